#include "privacy/dpsgd/clipper.h"

#include "base/error.h"
#include "models/layers.h"
#include "privacy/dpsgd/chunk_pass.h"
#include "privacy/dpsgd/parameters.h"
#include "privacy/dpsgd/term_of_layer.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <optional>

namespace sotto::privacy {
namespace {

// Of all that a forward pass keeps for the backward pass, layers' outputs are about this part.
constexpr double kShareOfActivations = 0.5;
// A clipped pass may hold this much more than a plain one of the whole batch.
constexpr double kMemoryRatio = 1.15;

int64_t suggested_micro_batch(const RehearsalPass& rehearsal, int64_t batch) {
  const double plain = static_cast<double>(rehearsal.activation_floats()) / kShareOfActivations;
  const double clipped = plain + static_cast<double>(rehearsal.kept_floats());
  const auto fitting = static_cast<int64_t>(static_cast<double>(batch) * kMemoryRatio * plain / clipped);
  const int64_t passes = (batch + std::max<int64_t>(fitting, 1) - 1) / std::max<int64_t>(fitting, 1);
  return (batch + passes - 1) / passes;
}

ClippedLayers clipped_layers(models::Model& model, const std::vector<NamedParameter>& parameters) {
  ClippedLayers layers;
  size_t covered = 0;
  for (const auto& module : model.named_modules("", false)) {
    auto* layer = dynamic_cast<models::Layer*>(module.value().get());
    if (layer == nullptr) continue;
    ClippedLayer clipped;
    const auto find = [&](const at::Tensor& tensor) -> const Parameter* {
      for (const auto& [name, parameter] : parameters)
        if (parameter.value.is_same(tensor)) {
          clipped.parameters.push_back(tensor);
          clipped.parameter_names.push_back(name);
          return &parameter;
        }
      return nullptr;
    };
    clipped.term = make_term(*layer, find);
    if (clipped.term == nullptr) continue;
    clipped.name = module.key();
    covered += clipped.parameters.size();
    layers.emplace(layer, std::move(clipped));
  }
  if (covered == parameters.size()) return layers;
  for (const auto& [name, parameter] : parameters)
    if (std::none_of(layers.begin(), layers.end(), [&, &n = name](const auto& entry) {
          const auto& names = entry.second.parameter_names;
          return std::find(names.begin(), names.end(), n) != names.end();
        }))
      fail_user("per-example clipping: parameter '{}' belongs to no layer that has a per-example form; freeze it",
                name);
  fail_user("per-example clipping: a parameter belongs to two layers; give each layer its own");
}

}  // namespace

at::Tensor cross_entropy(const at::Tensor& logits, const at::Tensor& labels) {
  return at::cross_entropy_loss(logits, labels, {}, at::Reduction::None);
}

class PerExampleClipper::Impl {
 public:
  Impl(models::Model& model, const models::FlatParameters& flat, const ClipOptions& options)
      : model_(model),
        gradient_(options.shared_only ? flat.shared_gradient() : flat.gradient()),
        micro_batch_(options.micro_batch),
        joint_(options.joint),
        bounds_(clip_bounds(options)),
        layers_(clipped_layers(model, clipped_parameters(model, flat, options))) {
    if (micro_batch_ < 0) fail_user("clipping: micro_batch must not be negative, it is {}", micro_batch_);
  }

  void set_bounds(const std::vector<double>& bounds) {
    check_bounds(bounds);
    if (bounds.size() != bounds_.size()) fail_user("clipping: {} bounds for {} groups", bounds.size(), bounds_.size());
    bounds_ = bounds;
  }

  models::Model& model() { return model_; }

  ClippedSum sum(const Losses& losses, int64_t batch) {
    refuse_batch_statistics();
    gradient_.zero_();
    ClippedSum total;
    total.norms = at::zeros({static_cast<int64_t>(bounds_.size()), batch}, at::kDouble);
    if (batch == 0) return total;
    try {
      const int64_t step = chunk_size(losses, batch);
      for (int64_t first = 0; first < batch; first += step)
        add_chunk(losses, first, std::min(step, batch - first), total);
    } catch (...) {
      gradient_.zero_();
      throw;
    }
    return total;
  }

 private:
  void refuse_batch_statistics() const {
    for (const auto& module : model_.named_modules("", false)) {
      const auto* norm = dynamic_cast<const models::BatchNorm2d*>(module.value().get());
      if (norm != nullptr && norm->uses_batch_statistics())
        fail_user(
            "per-example clipping: batch norm '{}' mixes the examples of a batch; use model.norm = \"group\", or "
            "freeze "
            "the backbone",
            module.key());
    }
  }

  // Also checks, once, that layers keep examples apart; with a single example there is nothing to mix.
  int64_t chunk_size(const Losses& losses, int64_t batch) {
    if (batch == 1) return 1;
    if (!rehearsal_) {
      const at::NoGradGuard no_grad;
      RehearsalPass rehearsal(layers_);
      const models::ObserveLayers observation(rehearsal);
      losses(0, 1);
      rehearsal_.emplace(rehearsal);
    }
    return micro_batch_ > 0 ? std::min(micro_batch_, batch) : suggested_micro_batch(*rehearsal_, batch);
  }

  void add_chunk(const Losses& losses, int64_t first, int64_t count, ClippedSum& total) {
    Chunk chunk(count, bounds_.size());
    ChunkPass pass(layers_, rehearsal_ ? &*rehearsal_ : nullptr, chunk);
    const at::AutoGradMode with_graph(true);
    at::Tensor values;
    {
      const models::ObserveLayers observation(pass);
      values = losses(first, count);
    }
    if (values.dim() != 1 || values.size(0) != count)
      fail_user("per-example clipping: the loss must have one value per example");
    pass.measure(values);

    const at::NoGradGuard no_grad;
    chunk.clip(bounds_, joint_);
    pass.add_weighted();
    record(chunk, first, total);
    total.loss += at::where(at::isfinite(values), values, at::zeros({})).sum(at::kDouble).item<double>();
  }

  void record(Chunk& chunk, int64_t first, ClippedSum& total) const {
    total.clipped += chunk.clipped();
    total.non_finite += static_cast<int64_t>(chunk.non_finite().size());
    for (size_t group = 0; group < bounds_.size(); ++group) {
      double* norms = total.norms.data_ptr<double>() + static_cast<int64_t>(group) * total.norms.size(1) + first;
      for (int64_t i = 0; i < chunk.examples(); ++i) norms[i] = std::sqrt(chunk.squares(group)[i]);
    }
  }

  models::Model& model_;
  at::Tensor gradient_;
  int64_t micro_batch_;
  bool joint_;
  std::vector<double> bounds_;
  ClippedLayers layers_;
  std::optional<RehearsalPass> rehearsal_;
};

PerExampleClipper::PerExampleClipper(models::Model& model, const models::FlatParameters& flat, ClipOptions options)
    : impl_(std::make_unique<Impl>(model, flat, options)) {}
PerExampleClipper::~PerExampleClipper() = default;
PerExampleClipper::PerExampleClipper(PerExampleClipper&&) noexcept = default;
PerExampleClipper& PerExampleClipper::operator=(PerExampleClipper&&) noexcept = default;

ClippedSum PerExampleClipper::sum(const at::Tensor& x, const at::Tensor& y, const PerExampleLoss& loss) {
  return sum(
      [&](int64_t first, int64_t count) {
        return loss(impl_->model().logits(x.narrow(0, first, count)), y.narrow(0, first, count));
      },
      x.size(0));
}

ClippedSum PerExampleClipper::sum(const Losses& losses, int64_t batch) {
  return impl_->sum(losses, batch);
}

void PerExampleClipper::set_bounds(const std::vector<double>& bounds) {
  impl_->set_bounds(bounds);
}

}  // namespace sotto::privacy

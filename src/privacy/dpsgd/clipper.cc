#include "privacy/dpsgd/clipper.h"

#include "base/error.h"
#include "base/log.h"
#include "models/layers.h"
#include "models/script/opaque.h"
#include "privacy/dpsgd/chunk_pass.h"
#include "privacy/dpsgd/parameters.h"
#include "privacy/dpsgd/term_of_layer.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

namespace sotto::privacy {
namespace {

// Of all that a forward pass keeps for the backward pass, layers' outputs are about this part.
constexpr double kShareOfActivations = 0.5;
// A clipped pass may hold this much more than a plain one of the whole batch.
constexpr double kMemoryRatio = 1.15;

// total += gradient, which becomes zero.
void move_into(const at::Tensor& total, const at::Tensor& gradient) {
  auto* sums = total.data_ptr<double>();
  auto* values = gradient.data_ptr<float>();
  for (int64_t i = 0; i < gradient.numel(); ++i) {
    sums[i] += static_cast<double>(values[i]);
    values[i] = 0;
  }
}

int64_t suggested_slots(const RehearsalPass& rehearsal, const ClipOptions& options) {
  const int64_t batch = std::max<int64_t>(options.usual_batch, 1);
  const double plain = static_cast<double>(rehearsal.activation_floats()) / kShareOfActivations;
  const double clipped = plain + static_cast<double>(rehearsal.kept_floats());
  const auto fitting = static_cast<int64_t>(static_cast<double>(batch) * kMemoryRatio * plain / clipped);
  return suited_slots(batch, options.batches_vary, std::clamp<int64_t>(fitting, 1, kMostSlots));
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
  Impl(models::Model& model, const models::FlatParameters& flat, ClipOptions options)
      : model_(model),
        gradient_(options.shared_only ? flat.shared_gradient() : flat.gradient()),
        options_(std::move(options)),
        bounds_(clip_bounds(options_)),
        layers_(clipped_layers(model, clipped_parameters(model, flat, options_))) {
    if (options_.slots < 0 || options_.slots > kMostSlots) {
      fail_user("clipping: a pass has 1 to {} slots, not {}; 0 leaves the choice to Sotto", kMostSlots, options_.slots);
    }
  }

  void set_bounds(const std::vector<double>& bounds) {
    check_bounds(bounds);
    if (bounds.size() != bounds_.size()) fail_user("clipping: {} bounds for {} groups", bounds.size(), bounds_.size());
    bounds_ = bounds;
  }

  void expect_batches(int64_t usual_batch, bool batches_vary) {
    options_.usual_batch = usual_batch;
    options_.batches_vary = batches_vary;
    slots_ = 0;
  }

  void prepare(const at::Tensor& x, const at::Tensor& y, const Losses& losses) {
    refuse_what_mixes_examples();
    if (slots_ == 0) choose_slots(x, y, losses);
    gradient_.zero_();
  }

  models::Model& model() { return model_; }
  int64_t slots() const { return slots_; }

  ClippedSum sum(const at::Tensor& x, const at::Tensor& y, const Losses& losses) {
    refuse_what_mixes_examples();
    gradient_.zero_();
    const int64_t batch = x.size(0);
    ClippedSum total;
    total.gradient = gradient_;
    total.norms = at::zeros({static_cast<int64_t>(bounds_.size()), batch}, at::kDouble);
    if (batch == 0) return total;
    try {
      if (slots_ == 0) choose_slots(x, y, losses);
      if (batch > slots_) total.gradient = emptied_total();
      for (int64_t first = 0; first < batch; first += slots_) {
        const int64_t count = std::min(slots_, batch - first);
        add_pass(with_blanks(x.narrow(0, first, count), slots_, blanks_.x),
                 with_blanks(y.narrow(0, first, count), slots_, blanks_.y), first, count, losses, total);
        if (batch > slots_) move_into(total_, gradient_);
      }
      if (batch > slots_) gradient_.copy_(total_);
    } catch (...) {
      gradient_.zero_();
      throw;
    }
    return total;
  }

 private:
  void refuse_what_mixes_examples() const {
    if (const auto* opaque = dynamic_cast<const models::OpaqueModel*>(&model_)) fail_user("{}", opaque->why());
    for (const auto& module : model_.named_modules("", false)) {
      const auto* dropout = dynamic_cast<const models::Dropout*>(module.value().get());
      if (dropout != nullptr && dropout->is_training() && dropout->probability() > 0)
        fail_user("per-example clipping: the masks of dropout '{}' follow the order of examples; set model.dropout = 0",
                  module.key());
      const auto* norm = dynamic_cast<const models::BatchNorm2d*>(module.value().get());
      if (norm != nullptr && norm->uses_batch_statistics())
        fail_user(
            "per-example clipping: batch norm '{}' mixes the examples of a batch; use model.norm = \"group\", or "
            "freeze "
            "the backbone",
            module.key());
    }
  }

  // Also checks that layers keep examples apart.
  void choose_slots(const at::Tensor& x, const at::Tensor& y, const Losses& losses) {
    if (!rehearsal_) {
      const at::NoGradGuard no_grad;
      RehearsalPass rehearsal(layers_);
      const models::ObserveLayers observation(rehearsal);
      losses(x.narrow(0, 0, 1), y.narrow(0, 0, 1));
      rehearsal_.emplace(rehearsal);
    }
    const int64_t wanted = options_.slots > 0 ? options_.slots : suggested_slots(*rehearsal_, options_);
    const auto [known, is_new] = chosen_.try_emplace(wanted, wanted);
    int64_t& slots = known->second;
    if (is_new && slots > 1 && !slots_are_alike(x, y, slots, losses)) {
      slots = whole_tiles(wanted);
      if (!slots_are_alike(x, y, slots, losses)) slots = 1;
    }
    slots_ = slots;
    if (is_new && slots_ == 1 && wanted > 1) {
      warn(
          "per-example clipping: the kernels of this machine treat rows of a batch differently; records are taken one "
          "at a time, which is slower");
    }
  }

  // Of made-up examples: nothing here depends on the records.
  bool slots_are_alike(const at::Tensor& x, const at::Tensor& y, int64_t slots, const Losses& losses) {
    const at::Tensor label = at::zeros_like(y.narrow(0, 0, 1)).repeat_interleave(slots, 0);
    for (int64_t which = 0; which < enough_trials(gradient_.numel(), slots); ++which) {
      Chunk chunk(slots, bounds_.size());
      ChunkPass pass(layers_, &*rehearsal_, chunk);
      measure(made_up_rows(x, slots, which), label, losses, pass, slots);
      for (size_t group = 0; group < bounds_.size(); ++group) {
        if (!rows_are_alike(at::from_blob(chunk.squares(group), {slots}, at::kDouble))) return false;
      }
    }
    return true;
  }

  at::Tensor measure(const at::Tensor& x, const at::Tensor& y, const Losses& losses, ChunkPass& pass,
                     int64_t slots) const {
    const at::AutoGradMode with_graph(true);
    at::Tensor values;
    {
      const models::ObserveLayers observation(pass);
      values = losses(x, y);
    }
    if (values.dim() != 1 || values.size(0) != slots)
      fail_user("per-example clipping: the loss must have one value per example");
    pass.measure(values);
    return values;
  }

  void add_pass(const at::Tensor& x, const at::Tensor& y, int64_t first, int64_t count, const Losses& losses,
                ClippedSum& total) {
    Chunk chunk(slots_, bounds_.size());
    ChunkPass pass(layers_, &*rehearsal_, chunk);
    const at::Tensor values = measure(x, y, losses, pass, slots_).narrow(0, 0, count);
    const at::NoGradGuard no_grad;
    chunk.clip(bounds_, options_.joint, count, options_.normalise);
    pass.add_weighted();
    total.clipped += chunk.clipped();
    for (const int64_t i : chunk.non_finite()) total.non_finite += i < count ? 1 : 0;
    for (size_t group = 0; group < bounds_.size(); ++group) {
      double* norms = total.norms.data_ptr<double>() + static_cast<int64_t>(group) * total.norms.size(1) + first;
      for (int64_t i = 0; i < count; ++i) norms[i] = std::sqrt(chunk.squares(group)[i]);
    }
    total.loss += at::where(at::isfinite(values), values, at::zeros({})).sum(at::kDouble).item<double>();
  }

  const at::Tensor& emptied_total() {
    if (!total_.defined()) total_ = at::empty(gradient_.sizes(), at::kDouble);
    return total_.zero_();
  }

  models::Model& model_;
  at::Tensor gradient_;
  ClipOptions options_;
  std::vector<double> bounds_;
  ClippedLayers layers_;
  std::optional<RehearsalPass> rehearsal_;
  int64_t slots_ = 0;                  // 0: not chosen yet
  std::map<int64_t, int64_t> chosen_;  // what was wanted → what this machine computes alike
  at::Tensor total_;                   // of several passes
  struct {
    at::Tensor x, y;
  } blanks_;
};

PerExampleClipper::PerExampleClipper(models::Model& model, const models::FlatParameters& flat, ClipOptions options)
    : impl_(std::make_unique<Impl>(model, flat, std::move(options))) {}
PerExampleClipper::~PerExampleClipper() = default;
PerExampleClipper::PerExampleClipper(PerExampleClipper&&) noexcept = default;
PerExampleClipper& PerExampleClipper::operator=(PerExampleClipper&&) noexcept = default;

ClippedSum PerExampleClipper::sum(const at::Tensor& x, const at::Tensor& y, const PerExampleLoss& loss) {
  return impl_->sum(x, y, [&](const at::Tensor& some, const at::Tensor& labels) {
    return loss(impl_->model().logits(some), labels);
  });
}

ClippedSum PerExampleClipper::sum_losses(const at::Tensor& x, const at::Tensor& y, const Losses& losses) {
  return impl_->sum(x, y, losses);
}

void PerExampleClipper::prepare(const at::Tensor& x, const at::Tensor& y, const Losses& losses) {
  impl_->prepare(x, y, losses);
}

int64_t PerExampleClipper::slots() const {
  return impl_->slots();
}

void PerExampleClipper::expect_batches(int64_t usual_batch, bool batches_vary) {
  impl_->expect_batches(usual_batch, batches_vary);
}

void PerExampleClipper::set_bounds(const std::vector<double>& bounds) {
  impl_->set_bounds(bounds);
}

}  // namespace sotto::privacy

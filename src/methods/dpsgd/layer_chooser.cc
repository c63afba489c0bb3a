#include "methods/dpsgd/layer_chooser.h"

#include "methods/parts/softmax_kl.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

namespace sotto::methods {
namespace {

constexpr const char* kEstimates = "layer-estimates";
constexpr int64_t kProbes = 16;
// No layer is taken to need less than this part of what the neediest one needs.
constexpr double kLeastNeed = 1e-3;
// Any bound will do: norms are those before clipping.
constexpr double kProbeBound = 1.0;

// Records of noise as loud as images are, with labels by turns: they are nobody's.
struct Probes {
  at::Tensor x, y;
};

Probes make_probes(const models::Task& task, RandomStream stream) {
  std::vector<int64_t> shape = {kProbes};
  shape.insert(shape.end(), task.record_shape.begin(), task.record_shape.end());
  const at::Generator generator = stream.torch_generator();
  const at::Tensor y = at::arange(kProbes, at::kLong).remainder(task.classes);
  if (task.tokens) return {at::randint(1, 1000, shape, generator, at::kLong), y};
  return {at::randn(shape, generator).clamp_(-1, 1), y};
}

}  // namespace

LayerChooser::LayerChooser(const PublicContext& context, LayerRule rule, LocalTrainer& trainer)
    : context_(context), rule_(std::move(rule)), trainer_(trainer), layers_(models::trainable_layers(trainer.model())) {
  const std::string head = trainer.model().head_name();
  for (const auto& layer : layers_) {
    const bool classifier = layer.name == head || layer.name.starts_with(head + ".");
    facts_.push_back({.name = layer.name, .classifier = classifier, .coordinates = layer.coordinates()});
  }
}

bool LayerChooser::choose(const Broadcast& broadcast, const privacy::PrivateState& state, privacy::DescentPlan& plan) {
  global_ = &broadcast.values;
  if (rule_.bounds == LayerBounds::kProbe && probed_round_ != broadcast.round) probe(broadcast.round);
  const at::Tensor known = find_tensor(state.values(), kEstimates);
  for (size_t i = 0; i < layers_.size(); ++i) {
    double square = 0;
    for (const auto& [name, value] : layers_[i].parameters) square += std::pow(value.norm().item<double>(), 2);
    facts_[i].norm = std::sqrt(square);
    facts_[i].estimate = known.defined() ? known.data_ptr<double>()[i] : rule_.kl_bound;
  }
  const auto cohort = static_cast<double>(expected_cohort(context_.spec));
  const double noise = plan.noise_multiplier * privacy::sum_sensitivity(1.0, plan.neighbours.adjacency) /
                       (plan.expected_batch() * std::sqrt(cohort));
  plan.layers = deal_layers(rule_, facts_, plan.clip, noise);
  return std::any_of(plan.layers.begin(), plan.layers.end(), [](const auto& layer) { return layer.chosen(); });
}

NamedTensors LayerChooser::estimates(const NamedTensors& released) const {
  NamedTensors kept;
  if (!rule_.estimate) return kept;
  const at::Tensor values = at::empty({static_cast<int64_t>(layers_.size())}, at::kDouble);
  for (size_t i = 0; i < layers_.size(); ++i) {
    std::vector<at::Tensor> own, global;
    for (const auto& [name, value] : layers_[i].parameters) {
      const at::Tensor sent = find_tensor(released, name), known = find_tensor(*global_, name);
      if (!sent.defined() || !known.defined()) continue;
      own.push_back(sent.reshape({-1}));
      global.push_back(known.reshape({-1}));
    }
    values[static_cast<int64_t>(i)] = own.empty() ? facts_[i].estimate : softmax_kl(at::cat(own), at::cat(global));
  }
  kept.push_back({kEstimates, values});
  return kept;
}

void LayerChooser::probe(int64_t round) {
  privacy::ClipOptions options;
  for (const auto& layer : layers_) {
    std::vector<std::string> names;
    for (const NamedTensor& parameter : layer.parameters) names.push_back(parameter.name);
    options.groups.push_back({.prefixes = std::move(names), .bound = kProbeBound});
  }
  privacy::PerExampleClipper clipper(trainer_.model(), trainer_.flat(), std::move(options));
  const Probes probes =
      make_probes(context_.facts.task, RandomStream(context_.spec.seed, "layer-probe", static_cast<uint64_t>(round)));
  trainer_.model().train();
  const at::Tensor norms = clipper.sum(probes.x, probes.y).norms.nan_to_num(0, 0, 0).square().mean(1).sqrt();
  const double largest = norms.max().item<double>();
  for (size_t i = 0; i < facts_.size(); ++i) {
    facts_[i].need = largest > 0 ? std::max(norms[static_cast<int64_t>(i)].item<double>(), kLeastNeed * largest) : 1;
  }
  probed_round_ = round;
}

}  // namespace sotto::methods

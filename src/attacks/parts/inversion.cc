#include "attacks/parts/inversion.h"

#include "base/error.h"
#include "base/random.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/optim/adam.h>
#include <torch/optim/lbfgs.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <memory>

namespace sotto::attacks {
namespace {

constexpr double kProgress = 1e-6;

at::Tensor total_variation(const at::Tensor& x) {
  if (x.dim() != 4) return at::zeros({});
  return (x.slice(2, 1) - x.slice(2, 0, -1)).abs().mean() + (x.slice(3, 1) - x.slice(3, 0, -1)).abs().mean();
}

at::Tensor input_of(const at::Tensor& z, const InversionOptions& options) {
  return options.as_printed ? (z.tanh() + 1) / 2 : z.tanh();
}

// Descent on z so that loss(input_of(z)) is small; the best x of all steps.
at::Tensor minimise(std::vector<int64_t> shape, const InversionOptions& options,
                    const std::function<at::Tensor(const at::Tensor& x)>& loss) {
  RandomStream stream(options.seed, "inversion");
  at::Generator generator = stream.torch_generator();
  at::Tensor z = at::empty(shape, at::kFloat).normal_(0, 0.5, generator).requires_grad_();
  const std::vector<at::Tensor> inputs = {z};
  std::unique_ptr<torch::optim::Optimizer> optimizer;
  if (options.descent == Descent::kAdam) {
    optimizer = std::make_unique<torch::optim::Adam>(inputs, torch::optim::AdamOptions(options.lr));
  } else {
    optimizer = std::make_unique<torch::optim::LBFGS>(
        inputs,
        torch::optim::LBFGSOptions(1).max_iter(1).tolerance_grad(0).tolerance_change(0).line_search_fn("strong_wolfe"));
  }
  double best = std::numeric_limits<double>::infinity(), progress = best;
  at::Tensor found = input_of(z.detach(), options);
  const auto look = [&] {
    const at::AutoGradMode with_gradient(true);
    const at::Tensor x = input_of(z, options);
    const at::Tensor value = loss(x) + options.variation * total_variation(x);
    if (const double now = value.item<double>(); now < best) {
      best = now;
      found = x.detach().clone();
    }
    z.mutable_grad() = torch::autograd::grad({value}, {z})[0];
    return value.detach();
  };
  int64_t since = 0;
  for (int64_t step = 0; step < options.steps && since < options.patience; ++step) {
    optimizer->step(look);
    since = best < progress - kProgress ? 0 : since + 1;
    if (since == 0) progress = best;
  }
  return found;
}

at::Tensor cosine(const at::Tensor& a, const at::Tensor& b) {
  return a.dot(b) / (a.norm() * b.norm()).clamp_min(1e-12);
}

std::vector<int64_t> with_count(int64_t count, const std::vector<int64_t>& shape) {
  std::vector<int64_t> all = {count};
  all.insert(all.end(), shape.begin(), shape.end());
  return all;
}

}  // namespace

Descent descent_named(const std::string& name) {
  if (name == "adam") return Descent::kAdam;
  if (name == "lbfgs") return Descent::kLbfgs;
  fail_user("--optimizer: '{}' is neither adam nor lbfgs", name);
}

std::vector<int64_t> recover_labels(const at::Tensor& bias_gradient, int64_t count) {
  at::Tensor left = bias_gradient.to(at::kDouble).clone();
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < count; ++i) {
    labels.push_back(left.argmin().item<int64_t>());
    left[labels.back()] += 1.0 / static_cast<double>(count);
  }
  std::sort(labels.begin(), labels.end());
  return labels;
}

Inverted invert_gradient(models::Model& model, const at::Tensor& gradient, int64_t count,
                         const std::vector<int64_t>& record_shape, const InversionOptions& options) {
  model.eval();
  std::vector<at::Tensor> parameters;
  Inverted result;
  const std::string bias = model.head_name() + ".bias";
  int64_t offset = 0;
  for (const auto& [name, value] : model.shared_parameters()) {
    if (name == bias) result.labels = recover_labels(gradient.narrow(0, offset, value.numel()), count);
    parameters.push_back(value);
    offset += value.numel();
  }
  SOTTO_INVARIANT(offset == gradient.numel());
  if (result.labels.empty()) {
    fail_user("gradient inversion reads labels off the classifier's bias, which this upload does not hold");
  }
  const at::Tensor labels = at::tensor(result.labels, at::kLong);
  const auto similarity = [&](const at::Tensor& x) {
    const at::Tensor loss = at::cross_entropy_loss(model.logits(x), labels);
    std::vector<at::Tensor> flat;
    for (const at::Tensor& part : torch::autograd::grad({loss}, parameters, {}, true, true)) {
      flat.push_back(part.reshape({-1}));
    }
    return cosine(at::cat(flat), gradient);
  };
  result.x = minimise(with_count(count, record_shape), options, [&](const at::Tensor& x) { return 1 - similarity(x); });
  result.cosine = similarity(result.x).item<double>();
  return result;
}

Inverted hijack_features(models::Model& model, const at::Tensor& prototypes, const std::vector<int64_t>& record_shape,
                         const InversionOptions& options) {
  model.eval();
  const at::Tensor wanted = prototypes.to(at::kFloat);
  const auto similarity = [&](const at::Tensor& x) {
    return at::cosine_similarity(model.features(x), wanted, 1, 1e-8).mean();
  };
  // The model's pictures are in [-1, 1].
  const auto shown = [&](const at::Tensor& x) { return options.as_printed && x.dim() == 4 ? 2 * x - 1 : x; };
  const auto loss = [&](const at::Tensor& x) {
    if (!options.as_printed) return 1 - similarity(x);
    return (model.features(shown(x)) - wanted).square().sum(1).mean();
  };
  Inverted result;
  result.x = shown(minimise(with_count(prototypes.size(0), record_shape), options, loss));
  for (int64_t label = 0; label < prototypes.size(0); ++label) result.labels.push_back(label);
  result.cosine = similarity(result.x).item<double>();
  return result;
}

}  // namespace sotto::attacks

#include "methods/prompts/prompt_learner.h"

#include "base/error.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

namespace sotto::methods {
namespace {

constexpr double kFirstStddev = 0.02;

at::Tensor normal(at::IntArrayRef shape, RandomStream& stream) {
  return at::empty(shape).normal_(0.0, 1.0, stream.torch_generator());
}

}  // namespace

PromptLearner::PromptLearner(PromptShape shape, models::PromptedClasses classes)
    : shape_(shape), classes_(std::move(classes)) {
  const bool ranked = shape_.local == LocalPrompt::kFactored || shape_.local == LocalPrompt::kFactors;
  const int64_t largest = std::min(classes_.length(), classes_.model().word_width());
  if (ranked && (shape_.rank < 1 || shape_.rank > largest)) {
    fail_user("method.rank is {}: a prompt of {} vectors of {} numbers has ranks from 1 to {}", shape_.rank,
              classes_.length(), classes_.model().word_width(), largest);
  }
  if (shape_.contrast > 0) start_text_ = classes_.zero_shot();
}

NamedTensors PromptLearner::first_local(RandomStream& stream) const {
  const int64_t b = classes_.length(), w = classes_.model().word_width();
  NamedTensors local;
  if (shape_.local == LocalPrompt::kFactors) {
    local.push_back({"u", normal({b, shape_.rank}, stream) * kFirstStddev});
    local.push_back({"v", normal({shape_.rank, w}, stream) * kFirstStddev});
  } else if (has_local()) {
    local.push_back({"local", normal({b, w}, stream) * kFirstStddev});
  }
  return local;
}

void PromptLearner::set(const at::Tensor& global, const NamedTensors& local) {
  global_ = global.clone();
  local_ = clone(local);
  leaf_ = at::Tensor();
  text_ = at::Tensor();
  factors_ = {};
}

Factors PromptLearner::factors() const {
  if (factors_.u.defined()) return factors_;
  RandomStream start(0, "factors-outside-steps");
  const at::Tensor local = find_tensor(local_, "local");
  return factorise(local, normal({local.size(1), shape_.rank}, start));
}

at::Tensor PromptLearner::prompts() const {
  if (local_.empty()) return global_.unsqueeze(0);
  if (shape_.local == LocalPrompt::kAligned) return at::stack({global_, find_tensor(local_, "local")});
  if (shape_.local == LocalPrompt::kFactors) {
    return (global_ + at::matmul(find_tensor(local_, "u"), find_tensor(local_, "v"))).unsqueeze(0);
  }
  if (shape_.local == LocalPrompt::kFactored && !shape_.residual) {
    const auto [u, v] = factors();
    return (global_ + at::matmul(u, v)).unsqueeze(0);
  }
  return (global_ + find_tensor(local_, "local")).unsqueeze(0);
}

at::Tensor PromptLearner::trained_prompts() const {
  const at::Tensor used = prompts();
  return shape_.contrast > 0 ? at::cat({used, global_.unsqueeze(0)}) : used;
}

void PromptLearner::begin_step(RandomStream& start) {
  if (shape_.local == LocalPrompt::kFactored) {
    at::Tensor local = find_tensor(local_, "local");
    factors_ = factorise(local, normal({local.size(1), shape_.rank}, start));
    if (shape_.cut) local.copy_(low_rank_part(local, factors_));
  } else if (shape_.local == LocalPrompt::kFactors) {
    factors_ = {find_tensor(local_, "u"), find_tensor(local_, "v")};
  }
  const at::AutoGradMode with_graph(true);
  leaf_ = trained_prompts().detach().requires_grad_();
  text_ = classes_.text_features(leaf_);
}

PromptLearner::Evidence PromptLearner::evidence(const at::Tensor& images, const at::Tensor& labels) const {
  const at::NoGradGuard no_grad;
  const double temperature = classes_.model().temperature();
  const bool aligned = shape_.local == LocalPrompt::kAligned;
  const at::Tensor text = text_.detach().narrow(0, 0, aligned ? 2 : 1);
  at::Tensor plans, logits;
  if (aligned) {
    const at::Tensor cosines = at::einsum("jcd,bmd->bcjm", {text, patches_of(images)});
    plans = transport_plans(1.0 - cosines, shape_.transport);
    logits = (plans * cosines).sum(at::IntArrayRef({2, 3})) / temperature;
  } else {
    logits = prompt_logits(text, images, temperature, shape_.transport);
  }
  const at::Tensor log_probabilities = at::log_softmax(logits, 1);
  Evidence evidence;
  evidence.losses = -log_probabilities.gather(1, labels.unsqueeze(1)).squeeze(1);
  const at::Tensor errors =
      (log_probabilities.exp() - at::one_hot(labels, logits.size(1)).to(logits.scalar_type())) / temperature;
  if (aligned) {
    // Plans are taken as they are: of what moves them, the first order is zero where they are optimal.
    evidence.images = at::einsum("bc,bcjm,bmd->bjcd", {errors, plans, patches_of(images)}).flatten(1);
  } else {
    evidence.errors = errors;
    evidence.images = images.select(1, 0);
  }
  return evidence;
}

double PromptLearner::Evidence::loss() const {
  return losses.sum().item<double>();
}

at::Tensor PromptLearner::sum_of(const Evidence& evidence) {
  if (!evidence.errors.defined()) return evidence.images.sum(0);
  return at::matmul(evidence.errors.t(), evidence.images).flatten();
}

int64_t PromptLearner::feature_coordinates() const {
  const int64_t prompts = shape_.local == LocalPrompt::kAligned ? 2 : 1;
  return prompts * classes_.classes() * classes_.model().feature_width();
}

int64_t PromptLearner::prompt_coordinates(bool local, bool global) const {
  int64_t sum = 0;
  for (const auto& [name, shape] : parameter_shapes()) sum += (name == "global" ? global : local) ? shape.numel() : 0;
  return sum;
}

NamedTensors PromptLearner::parameter_shapes() const {
  const int64_t b = classes_.length(), w = classes_.model().word_width();
  const bool ranked = shape_.local == LocalPrompt::kFactored || shape_.local == LocalPrompt::kFactors;
  NamedTensors shapes;
  if (ranked) {
    shapes.push_back({"u", at::empty({b, shape_.rank})});
    shapes.push_back({"v", at::empty({shape_.rank, w})});
  } else if (has_local()) {
    shapes.push_back({"local", at::empty({b, w})});
  }
  shapes.push_back({"global", at::empty({b, w})});
  return shapes;
}

at::Tensor PromptLearner::leaf_gradient(const at::Tensor& by_text) const {
  const auto gradients = torch::autograd::grad({text_}, {leaf_}, {by_text}, /*retain_graph=*/true);
  return gradients[0];
}

NamedTensors PromptLearner::by_parameters(const at::Tensor& by_prompts) const {
  const at::Tensor first = by_prompts.select(-3, 0);
  NamedTensors gradients;
  switch (shape_.local) {
    case LocalPrompt::kNone:
      break;
    case LocalPrompt::kWhole:
      gradients.push_back({"local", first});
      break;
    case LocalPrompt::kFactored:
    case LocalPrompt::kFactors:
      gradients.push_back({"u", at::matmul(first, factors_.v.t())});
      gradients.push_back({"v", at::matmul(factors_.u.t(), first)});
      break;
    case LocalPrompt::kAligned:
      gradients.push_back({"local", by_prompts.select(-3, 1)});
      break;
  }
  at::Tensor of_global = first;
  if (shape_.contrast > 0) of_global = of_global + by_prompts.select(-3, by_prompts.size(-3) - 1);
  gradients.push_back({"global", of_global});
  return gradients;
}

NamedTensors PromptLearner::pull_back(const at::Tensor& by_features) const {
  const int64_t prompts = shape_.local == LocalPrompt::kAligned ? 2 : 1;
  at::Tensor by_text = at::zeros_like(text_.detach());
  by_text.narrow(0, 0, prompts).copy_(by_features.view({prompts, text_.size(1), text_.size(2)}));
  return by_parameters(leaf_gradient(by_text));
}

NamedTensors PromptLearner::pull_back_each(const Evidence& evidence) const {
  const int64_t records = evidence.images.size(0);
  const int64_t prompts = shape_.local == LocalPrompt::kAligned ? 2 : 1;
  NamedTensors each = parameter_shapes();
  for (NamedTensor& parameter : each) {
    std::vector<int64_t> shape = parameter.value.sizes().vec();
    shape.insert(shape.begin(), records);
    parameter.value = at::empty(shape);
  }
  at::Tensor by_text = at::zeros_like(text_.detach());
  for (int64_t i = 0; i < records; ++i) {
    const at::Tensor own =
        evidence.errors.defined() ? at::outer(evidence.errors[i], evidence.images[i]) : evidence.images[i];
    by_text.narrow(0, 0, prompts).copy_(own.view({prompts, text_.size(1), text_.size(2)}));
    const NamedTensors gradients = by_parameters(leaf_gradient(by_text));
    for (size_t k = 0; k < each.size(); ++k) each[k].value.select(0, i).copy_(gradients[k].value);
  }
  return each;
}

NamedTensors PromptLearner::public_terms() const {
  if (!(shape_.contrast > 0)) return {};
  const at::AutoGradMode with_graph(true);
  const at::Tensor text = text_.detach().requires_grad_();
  const at::Tensor loss = shape_.contrast * contrast_loss(text[1], start_text_, text[0], shape_.contrast_temperature);
  return by_parameters(leaf_gradient(torch::autograd::grad({loss}, {text})[0]));
}

void PromptLearner::descend(const NamedTensors& gradients, double lr, double global_lr) {
  const at::Tensor of_global = find_tensor(gradients, "global");
  if (of_global.defined()) global_.sub_(of_global, global_lr);
  if (shape_.local == LocalPrompt::kFactored) {
    const at::Tensor of_u = find_tensor(gradients, "u");
    if (of_u.defined()) {
      find_tensor(local_, "local").sub_(rebuild_gradient(of_u, find_tensor(gradients, "v"), factors_), lr);
    }
    return;
  }
  for (auto& [name, value] : local_) {
    const at::Tensor gradient = find_tensor(gradients, name);
    if (gradient.defined()) value.sub_(gradient, lr);
  }
}

}  // namespace sotto::methods

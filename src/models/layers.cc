#include "models/layers.h"

#include "models/ops/ops.h"

#include <ATen/ATen.h>

#include <cmath>

namespace sotto::models {
namespace {

// PyTorch's default for linear and convolution layers, weights and biases alike: U(-1/√fan_in, 1/√fan_in).
at::Tensor fan_in_uniform(at::IntArrayRef shape, int64_t fan_in, const at::Generator& init) {
  const double bound = 1.0 / std::sqrt(static_cast<double>(fan_in));
  return at::empty(shape).uniform_(-bound, bound, init);
}

}  // namespace

at::Tensor LayerObserver::on_conv_block(Conv2d&, const at::Tensor&, const Pooling&) {
  return {};
}

ObserveLayers::ObserveLayers(LayerObserver& observer) : outer_(std::exchange(Layer::observer_, &observer)) {}

ObserveLayers::~ObserveLayers() {
  Layer::observer_ = outer_;
}

Linear::Linear(int64_t in, int64_t out, at::Generator init) {
  weight = register_parameter("weight", fan_in_uniform({out, in}, in, init));
  bias = register_parameter("bias", fan_in_uniform({out}, in, init));
}

at::Tensor Linear::compute(const at::Tensor& input) {
  return at::linear(input, weight, bias);
}

Conv2d::Conv2d(const Options& options, at::Generator init) : options_(options) {
  const int64_t in = options.in / options.groups;
  const int64_t fan_in = in * options.kernel * options.kernel;
  weight =
      register_parameter("weight", fan_in_uniform({options.out, in, options.kernel, options.kernel}, fan_in, init));
  if (options.bias) bias = register_parameter("bias", fan_in_uniform({options.out}, fan_in, init));
}

at::Tensor Conv2d::compute(const at::Tensor& input) {
  const int64_t stride = options_.stride, padding = options_.padding;
  if (options_.groups == 1) return ops::conv2d(input, weight, bias, stride, padding);
  return at::conv2d(input, weight, bias, {stride, stride}, {padding, padding}, {1, 1}, options_.groups);
}

BatchNorm2d::BatchNorm2d(int64_t channels, double eps, double momentum) : eps_(eps), momentum_(momentum) {
  weight = register_parameter("weight", at::ones({channels}));
  bias = register_parameter("bias", at::zeros({channels}));
  running_mean = register_buffer("running_mean", at::zeros({channels}));
  running_var = register_buffer("running_var", at::ones({channels}));
}

at::Tensor BatchNorm2d::compute(const at::Tensor& input) {
  return at::batch_norm(input, weight, bias, running_mean, running_var, uses_batch_statistics(), momentum_, eps_,
                        false);
}

GroupNorm::GroupNorm(int64_t groups, int64_t channels) : groups_(groups) {
  weight = register_parameter("weight", at::ones({channels}));
  bias = register_parameter("bias", at::zeros({channels}));
}

at::Tensor GroupNorm::compute(const at::Tensor& input) {
  return at::group_norm(input, groups_, weight, bias, kEps);
}

LayerNorm::LayerNorm(int64_t width, double eps) : eps_(eps) {
  weight = register_parameter("weight", at::ones({width}));
  bias = register_parameter("bias", at::zeros({width}));
}

at::Tensor LayerNorm::compute(const at::Tensor& input) {
  return at::layer_norm(input, weight.sizes(), weight, bias, eps_);
}

Embedding::Embedding(int64_t count, int64_t width, at::Generator init) {
  weight = register_parameter("weight", at::empty({count, width}).normal_(0.0, 1.0, std::move(init)));
}

at::Tensor Embedding::compute(const at::Tensor& input) {
  return at::embedding(weight, input);
}

PositionEmbedding::PositionEmbedding(int64_t count, int64_t width, at::Generator init) {
  weight = register_parameter("weight", at::empty({1, count, width}).normal_(0.0, 0.02, std::move(init)));
}

at::Tensor PositionEmbedding::compute(const at::Tensor& input) {
  return input + weight;
}

Dropout::Dropout(double probability, std::shared_ptr<at::Generator> generator)
    : probability_(probability), generator_(std::move(generator)) {}

at::Tensor Dropout::forward(const at::Tensor& input) {
  if (!is_training() || probability_ == 0.0) return input;
  const double keep = 1.0 - probability_;
  return input * at::empty_like(input).bernoulli_(keep, *generator_).div_(keep);
}

at::Tensor conv_relu_max_pool(Conv2d& conv, const at::Tensor& x, const Pooling& pooling) {
  const auto& options = conv.options();
  if (Layer::observer() == nullptr && options.groups == 1)
    return ops::conv2d_relu_max_pool2d(x, conv.weight, conv.bias, options.stride, options.padding, pooling.kernel,
                                       pooling.stride);
  if (Layer::observer() != nullptr)
    if (at::Tensor pooled = Layer::observer()->on_conv_block(conv, x, pooling); pooled.defined()) return pooled;
  return ops::max_pool2d(at::relu(conv.forward(x)), pooling.kernel, pooling.stride);
}

at::Tensor attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, int64_t heads,
                  const at::Tensor& bias) {
  const int64_t batch = q.size(0);
  const int64_t width = q.size(2);
  const auto split = [&](const at::Tensor& x) {
    return x.reshape({batch, x.size(1), heads, width / heads}).transpose(1, 2);
  };
  at::Tensor scores = at::matmul(split(q) / std::sqrt(static_cast<double>(width / heads)), split(k).transpose(2, 3));
  if (bias.defined()) scores = scores + bias;
  return at::matmul(at::softmax(scores, -1), split(v)).transpose(1, 2).reshape({batch, q.size(1), width});
}

void init_normal(at::Tensor& parameter, double stddev, at::Generator init) {
  const at::NoGradGuard no_grad;
  parameter.normal_(0.0, stddev, std::move(init));
}

torch::nn::Module& submodule(torch::nn::Module& owner, std::string_view path) {
  const size_t dot = path.find('.');
  const std::string name(path.substr(0, dot));
  auto children = owner.named_children();
  const std::shared_ptr<torch::nn::Module>* found = children.find(name);
  torch::nn::Module& child =
      found != nullptr ? **found : *owner.register_module(name, std::make_shared<torch::nn::Module>());
  return dot == path.npos ? child : submodule(child, path.substr(dot + 1));
}

}  // namespace sotto::models

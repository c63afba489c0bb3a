#include "models/ops/conv_tensors.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

namespace sotto::models::ops {

namespace {

constexpr auto kChannelsLast = at::MemoryFormat::ChannelsLast;

}  // namespace

at::Tensor bias_or_zeros(const at::Tensor& bias, const at::Tensor& weight) {
  return bias.defined() ? bias : at::zeros({weight.size(0)}, weight.options());
}

at::Tensor reference_conv2d(const ConvArguments& a) {
  return at::conv2d(a.input, a.weight, a.bias, {a.stride, a.stride}, {a.padding, a.padding});
}

void conv_forward(const ConvShape& shape, const ConvArguments& a, const UsePixels& use) {
  const at::Tensor images = a.input.contiguous(kChannelsLast), weight = a.weight.contiguous();
  conv_forward(shape, images.size(0), images.data_ptr<float>(), weight.data_ptr<float>(),
               a.bias.contiguous().data_ptr<float>(), use);
}

std::vector<at::Tensor> conv_backward(const torch::autograd::AutogradContext& context, const ConvShape& shape,
                                      const ConvArguments& a, const FillPixels& fill) {
  const at::Tensor images = a.input.contiguous(kChannelsLast), weight = a.weight.contiguous();
  std::vector<at::Tensor> gradients(3);
  ConvGradients targets;
  if (context.needs_input_grad(0)) {
    gradients[0] = at::empty_like(images, kChannelsLast);
    targets.images = gradients[0].data_ptr<float>();
  }
  if (context.needs_input_grad(1)) {
    gradients[1] = at::empty_like(weight, at::MemoryFormat::Contiguous);
    targets.weight = gradients[1].data_ptr<float>();
  }
  if (context.needs_input_grad(2)) {
    gradients[2] = at::empty(a.bias.sizes(), a.bias.options());
    targets.bias = gradients[2].data_ptr<float>();
  }
  conv_backward(shape, images.size(0), images.data_ptr<float>(), weight.data_ptr<float>(), fill, targets);
  return gradients;
}

void save_arguments(torch::autograd::AutogradContext& context, const ConvArguments& a, const at::Tensor& extra) {
  context.save_for_backward({a.input, a.weight, a.bias, extra});
  context.saved_data["stride"] = a.stride;
  context.saved_data["padding"] = a.padding;
}

ConvArguments saved_arguments(torch::autograd::AutogradContext& context, at::Tensor* extra) {
  auto saved = context.get_saved_variables();
  if (extra) *extra = saved[3];
  return {saved[0], saved[1], saved[2], context.saved_data["stride"].toInt(), context.saved_data["padding"].toInt()};
}

}  // namespace sotto::models::ops

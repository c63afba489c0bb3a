// direct_conv.h on tensors: what the autograd functions of plain and fused convolutions share.
#pragma once

#include "models/ops/direct_conv.h"

#include <ATen/core/Tensor.h>

#include <vector>

namespace torch::autograd {
struct AutogradContext;
}

namespace sotto::models::ops {

// `bias` is always defined: autograd functions do not take undefined tensors.
struct ConvArguments {
  at::Tensor input, weight, bias;
  int64_t stride, padding;
};

// The bias, or zeros of its shape.
at::Tensor bias_or_zeros(const at::Tensor& bias, const at::Tensor& weight);

// at::conv2d of the same arguments.
at::Tensor reference_conv2d(const ConvArguments& arguments);

void conv_forward(const ConvShape& shape, const ConvArguments& arguments, const UsePixels& use);

// Gradients of input, weight and bias, undefined where the context wants none.
std::vector<at::Tensor> conv_backward(const torch::autograd::AutogradContext& context, const ConvShape& shape,
                                      const ConvArguments& arguments, const FillPixels& fill);

// Arguments through a context: tensors as its first three saved variables. `extra` is saved behind them.
void save_arguments(torch::autograd::AutogradContext& context, const ConvArguments& arguments,
                    const at::Tensor& extra = {});
ConvArguments saved_arguments(torch::autograd::AutogradContext& context, at::Tensor* extra = nullptr);

}  // namespace sotto::models::ops

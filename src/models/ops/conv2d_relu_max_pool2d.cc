#include "models/ops/choice.h"
#include "models/ops/conv_tensors.h"
#include "models/ops/double_backward.h"
#include "models/ops/kernels.h"
#include "models/ops/ops.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

namespace sotto::models::ops {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr auto kChannelsLast = at::MemoryFormat::ChannelsLast;

struct BlockShape {
  ConvShape conv;
  PoolShape pool;
};

std::optional<BlockShape> shape_of(const ConvArguments& a, int64_t pool_kernel, int64_t pool_stride) {
  const auto conv = direct_conv_shape(a.input, a.weight, a.bias, a.stride, a.padding, kWidestBlock);
  if (!conv) return {};
  const auto pool = direct_pool_shape(conv->filters, conv->out_height(), conv->out_width(), conv->out_pitch(),
                                      pool_kernel, pool_stride);
  if (!pool) return {};
  return BlockShape{*conv, *pool};
}

class FusedBlock : public torch::autograd::Function<FusedBlock> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input, const at::Tensor& weight,
                            const at::Tensor& bias, int64_t stride, int64_t padding, int64_t pool_kernel,
                            int64_t pool_stride) {
    const ConvArguments arguments = {input, weight, bias, stride, padding};
    const auto [conv, pool] = *shape_of(arguments, pool_kernel, pool_stride);
    const at::Tensor output =
        at::empty({input.size(0), pool.channels, pool.out_height, pool.out_width}, input.options(), kChannelsLast);
    const at::Tensor winners = at::empty_like(output, at::kByte);
    float* out = output.data_ptr<float>();
    uint8_t* winner = winners.data_ptr<uint8_t>();
    conv_forward(conv, arguments, [&, p = pool](int64_t first, int64_t samples, const float* pixels) {
      for (int64_t i = 0; i < samples; ++i)
        kernels().max_pool(p, true, pixels + i * p.in_size(), out + (first + i) * p.out_size(),
                           winner + (first + i) * p.out_size());
    });
    save_arguments(*context, arguments, winners);
    context->saved_data["pool_kernel"] = pool_kernel;
    context->saved_data["pool_stride"] = pool_stride;
    return output;
  }

  static variable_list backward(AutogradContext* context, variable_list output_gradients) {
    at::Tensor winners;
    const ConvArguments arguments = saved_arguments(*context, &winners);
    const int64_t pool_kernel = context->saved_data["pool_kernel"].toInt();
    const int64_t pool_stride = context->saved_data["pool_stride"].toInt();
    variable_list gradients;
    if (wants_graph()) {
      gradients = gradients_with_graph(
          {arguments.input, arguments.weight, arguments.bias}, output_gradients[0], [&](const variable_list& x) {
            return at::max_pool2d(at::relu(reference_conv2d({x[0], x[1], x[2], arguments.stride, arguments.padding})),
                                  {pool_kernel, pool_kernel}, {pool_stride, pool_stride});
          });
    } else {
      const auto [conv, pool] = *shape_of(arguments, pool_kernel, pool_stride);
      const at::Tensor output_gradient = output_gradients[0].contiguous(kChannelsLast);
      const float* from = output_gradient.data_ptr<float>();
      const uint8_t* winner = winners.data_ptr<uint8_t>();
      gradients =
          conv_backward(*context, conv, arguments, [&, p = pool](int64_t first, int64_t samples, float* pixels) {
            std::fill_n(pixels, samples * p.in_size(), 0.0f);
            for (int64_t i = 0; i < samples; ++i)
              kernels().max_pool_backward(p, from + (first + i) * p.out_size(), winner + (first + i) * p.out_size(),
                                          pixels + i * p.in_size());
          });
    }
    gradients.resize(7);
    return gradients;
  }
};

}  // namespace

at::Tensor conv2d_relu_max_pool2d(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias,
                                  int64_t stride, int64_t padding, int64_t pool_kernel, int64_t pool_stride) {
  if (!shape_of({input, weight, bias, stride, padding}, pool_kernel, pool_stride))
    return max_pool2d(at::relu(conv2d(input, weight, bias, stride, padding)), pool_kernel, pool_stride);
  return FusedBlock::apply(input, weight, bias_or_zeros(bias, weight), stride, padding, pool_kernel, pool_stride);
}

}  // namespace sotto::models::ops

#include "models/ops/choice.h"
#include "models/ops/double_backward.h"
#include "models/ops/kernels.h"
#include "models/ops/ops.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>

namespace sotto::models::ops {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr auto kChannelsLast = at::MemoryFormat::ChannelsLast;

// Below this many channels the vectors across channels would be mostly empty.
constexpr int64_t kMinChannels = 4;

std::optional<PoolShape> shape_of(const at::Tensor& input, int64_t kernel, int64_t stride) {
  if (!is_plain_float(input) || input.dim() != 4 || input.numel() == 0 || input.size(1) < kMinChannels) return {};
  return direct_pool_shape(input.size(1), input.size(2), input.size(3), input.size(1), kernel, stride);
}

at::Tensor reference(const at::Tensor& input, int64_t kernel, int64_t stride) {
  return at::max_pool2d(input, {kernel, kernel}, {stride, stride});
}

class DirectMaxPool2d : public torch::autograd::Function<DirectMaxPool2d> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input, int64_t kernel, int64_t stride) {
    const PoolShape shape = *shape_of(input, kernel, stride);
    const at::Tensor images = input.contiguous(kChannelsLast);
    const at::Tensor output =
        at::empty({input.size(0), shape.channels, shape.out_height, shape.out_width}, input.options(), kChannelsLast);
    const at::Tensor winners = at::empty_like(output, at::kByte);
    const float* in = images.data_ptr<float>();
    float* out = output.data_ptr<float>();
    uint8_t* winner = winners.data_ptr<uint8_t>();
    at::parallel_for(0, input.size(0), 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        kernels().max_pool(shape, false, in + i * shape.in_size(), out + i * shape.out_size(),
                           winner + i * shape.out_size());
    });
    context->save_for_backward({input, winners});
    context->saved_data["kernel"] = kernel;
    context->saved_data["stride"] = stride;
    return output;
  }

  static variable_list backward(AutogradContext* context, variable_list output_gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &input = saved[0], &winners = saved[1];
    const int64_t kernel = context->saved_data["kernel"].toInt(), stride = context->saved_data["stride"].toInt();
    if (wants_graph())
      return {gradients_with_graph({input}, output_gradients[0],
                                   [&](const variable_list& x) { return reference(x[0], kernel, stride); })[0],
              {},
              {}};

    const PoolShape shape = *shape_of(input, kernel, stride);
    const at::Tensor output_gradient = output_gradients[0].contiguous(kChannelsLast);
    const at::Tensor gradient = at::empty_like(input, kChannelsLast).zero_();
    const float* from = output_gradient.data_ptr<float>();
    const uint8_t* winner = winners.data_ptr<uint8_t>();
    float* to = gradient.data_ptr<float>();
    at::parallel_for(0, input.size(0), 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        kernels().max_pool_backward(shape, from + i * shape.out_size(), winner + i * shape.out_size(),
                                    to + i * shape.in_size());
    });
    return {gradient, {}, {}};
  }
};

}  // namespace

at::Tensor max_pool2d(const at::Tensor& input, int64_t kernel, int64_t stride) {
  if (!shape_of(input, kernel, stride)) return reference(input, kernel, stride);
  return DirectMaxPool2d::apply(input, kernel, stride);
}

}  // namespace sotto::models::ops

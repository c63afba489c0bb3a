#include "models/ops/choice.h"
#include "models/ops/conv_tensors.h"
#include "models/ops/double_backward.h"
#include "models/ops/kernels.h"
#include "models/ops/ops.h"
#include "models/ops/per_example.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <utility>
#include <vector>

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

at::Tensor block_forward(const ConvArguments& arguments, const BlockShape& shape, at::Tensor& winners) {
  const PoolShape& p = shape.pool;
  const at::Tensor output = at::empty({arguments.input.size(0), p.channels, p.out_height, p.out_width},
                                      arguments.input.options(), kChannelsLast);
  winners = at::empty_like(output, at::kByte);
  float* out = output.data_ptr<float>();
  uint8_t* winner = winners.data_ptr<uint8_t>();
  conv_forward(shape.conv, arguments, [&](int64_t first, int64_t samples, const float* pixels) {
    for (int64_t i = 0; i < samples; ++i)
      kernels().max_pool(p, true, pixels + i * p.in_size(), out + (first + i) * p.out_size(),
                         winner + (first + i) * p.out_size());
  });
  return output;
}

// The gradients of the convolution's output pixels, from those of the block's output. Both tensors must outlive it.
FillPixels fill_from_pool(const PoolShape& pool, const at::Tensor& output_gradient, const at::Tensor& winners) {
  const float* from = output_gradient.data_ptr<float>();
  const uint8_t* winner = winners.data_ptr<uint8_t>();
  return [from, winner, pool](int64_t first, int64_t samples, float* pixels) {
    std::fill_n(pixels, samples * pool.in_size(), 0.0f);
    for (int64_t i = 0; i < samples; ++i)
      kernels().max_pool_backward(pool, from + (first + i) * pool.out_size(), winner + (first + i) * pool.out_size(),
                                  pixels + i * pool.in_size());
  };
}

class FusedBlock : public torch::autograd::Function<FusedBlock> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input, const at::Tensor& weight,
                            const at::Tensor& bias, int64_t stride, int64_t padding, int64_t pool_kernel,
                            int64_t pool_stride) {
    const ConvArguments arguments = {input, weight, bias, stride, padding};
    at::Tensor winners;
    const at::Tensor output = block_forward(arguments, *shape_of(arguments, pool_kernel, pool_stride), winners);
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
      gradients = conv_backward(*context, conv, arguments, fill_from_pool(pool, output_gradient, winners));
    }
    gradients.resize(7);
    return gradients;
  }
};

struct RowsTarget : torch::CustomClassHolder {
  explicit RowsTarget(UseConvRows wanted) : use(std::move(wanted)) {}
  UseConvRows use;
};

class PerExampleBlock : public torch::autograd::Function<PerExampleBlock> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input, const at::Tensor& weight,
                            const at::Tensor& bias, const at::Tensor&, int64_t stride, int64_t padding,
                            int64_t pool_kernel, int64_t pool_stride, const UseConvRows& use) {
    const ConvArguments arguments = {input, weight, bias, stride, padding};
    at::Tensor winners;
    const at::Tensor output = block_forward(arguments, *shape_of(arguments, pool_kernel, pool_stride), winners);
    save_arguments(*context, arguments, winners);
    context->saved_data["pool_kernel"] = pool_kernel;
    context->saved_data["pool_stride"] = pool_stride;
    context->saved_data["target"] = at::IValue::make_capsule(c10::make_intrusive<RowsTarget>(use));
    return output;
  }

  static variable_list backward(AutogradContext* context, variable_list output_gradients) {
    at::Tensor winners;
    const ConvArguments arguments = saved_arguments(*context, &winners);
    const auto [conv, pool] =
        *shape_of(arguments, context->saved_data["pool_kernel"].toInt(), context->saved_data["pool_stride"].toInt());
    const at::Tensor images = arguments.input.contiguous(kChannelsLast), weight = arguments.weight.contiguous();
    const at::Tensor output_gradient = output_gradients[0].contiguous(kChannelsLast);
    const at::Tensor rows = at::empty({images.size(0), conv_row_floats(conv)}, images.options());
    variable_list gradients(9);
    ConvGradients targets;
    std::vector<double> squares(static_cast<size_t>(images.size(0)));
    targets.rows = rows.data_ptr<float>();
    targets.row_squares = squares.data();
    if (context->needs_input_grad(0)) {
      gradients[0] = at::empty_like(images, kChannelsLast);
      targets.images = gradients[0].data_ptr<float>();
    }
    conv_backward(conv, images.size(0), images.data_ptr<float>(), weight.data_ptr<float>(),
                  fill_from_pool(pool, output_gradient, winners), targets);
    c10::static_intrusive_pointer_cast<RowsTarget>(context->saved_data["target"].toCapsule())->use(conv, rows, squares);
    return gradients;
  }
};

}  // namespace

at::Tensor conv2d_relu_max_pool2d_per_example(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias,
                                              int64_t stride, int64_t padding, int64_t pool_kernel, int64_t pool_stride,
                                              const at::Tensor& anchor, const UseConvRows& use) {
  if (!shape_of({input, weight, bias, stride, padding}, pool_kernel, pool_stride)) return {};
  return PerExampleBlock::apply(input, weight, bias_or_zeros(bias, weight), anchor, stride, padding, pool_kernel,
                                pool_stride, use);
}

at::Tensor conv2d_relu_max_pool2d(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias,
                                  int64_t stride, int64_t padding, int64_t pool_kernel, int64_t pool_stride) {
  if (!shape_of({input, weight, bias, stride, padding}, pool_kernel, pool_stride))
    return max_pool2d(at::relu(conv2d(input, weight, bias, stride, padding)), pool_kernel, pool_stride);
  return FusedBlock::apply(input, weight, bias_or_zeros(bias, weight), stride, padding, pool_kernel, pool_stride);
}

}  // namespace sotto::models::ops

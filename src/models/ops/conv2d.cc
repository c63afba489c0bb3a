#include "models/ops/choice.h"
#include "models/ops/conv_tensors.h"
#include "models/ops/double_backward.h"
#include "models/ops/ops.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

namespace sotto::models::ops {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr auto kChannelsLast = at::MemoryFormat::ChannelsLast;

ConvShape shape_of(const ConvArguments& a) {
  return *direct_conv_shape(a.input, a.weight, a.bias, a.stride, a.padding, kWidestConv);
}

void copy_rows(const float* from, int64_t from_pitch, float* to, int64_t to_pitch, int64_t rows, int64_t width) {
  for (int64_t row = 0; row < rows; ++row) std::copy_n(from + row * from_pitch, width, to + row * to_pitch);
}

class DirectConv2d : public torch::autograd::Function<DirectConv2d> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input, const at::Tensor& weight,
                            const at::Tensor& bias, int64_t stride, int64_t padding) {
    const ConvArguments arguments = {input, weight, bias, stride, padding};
    const ConvShape shape = shape_of(arguments);
    const at::Tensor output = at::empty({input.size(0), shape.filters, shape.out_height(), shape.out_width()},
                                        input.options(), kChannelsLast);
    float* out = output.data_ptr<float>();
    conv_forward(shape, arguments, [&](int64_t first, int64_t samples, const float* pixels) {
      copy_rows(pixels, shape.out_pitch(), out + first * shape.out_pixels() * shape.filters, shape.filters,
                samples * shape.out_pixels(), shape.filters);
    });
    save_arguments(*context, arguments);
    return output;
  }

  static variable_list backward(AutogradContext* context, variable_list output_gradients) {
    const ConvArguments arguments = saved_arguments(*context);
    variable_list gradients;
    if (wants_graph()) {
      gradients = gradients_with_graph(
          {arguments.input, arguments.weight, arguments.bias}, output_gradients[0], [&](const variable_list& x) {
            return reference_conv2d({x[0], x[1], x[2], arguments.stride, arguments.padding});
          });
    } else {
      const ConvShape shape = shape_of(arguments);
      const at::Tensor output_gradient = output_gradients[0].contiguous(kChannelsLast);
      const float* from = output_gradient.data_ptr<float>();
      gradients = conv_backward(*context, shape, arguments, [&](int64_t first, int64_t samples, float* pixels) {
        copy_rows(from + first * shape.out_pixels() * shape.filters, shape.filters, pixels, shape.out_pitch(),
                  samples * shape.out_pixels(), shape.filters);
      });
    }
    gradients.resize(5);
    return gradients;
  }
};

}  // namespace

at::Tensor conv2d(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias, int64_t stride,
                  int64_t padding) {
  if (!direct_conv_shape(input, weight, bias, stride, padding, kWidestConv))
    return reference_conv2d({input, weight, bias, stride, padding});
  return DirectConv2d::apply(input, weight, bias_or_zeros(bias, weight), stride, padding);
}

}  // namespace sotto::models::ops

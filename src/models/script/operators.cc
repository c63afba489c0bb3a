#include "models/script/operators.h"

#include <set>

namespace sotto::models {

bool is_known_operator(const std::string& name) {
  static const std::set<std::string> known = {
      // activations
      "aten::relu", "aten::relu6", "aten::gelu", "aten::silu", "aten::sigmoid", "aten::tanh", "aten::elu", "aten::selu",
      "aten::celu", "aten::leaky_relu", "aten::hardtanh", "aten::hardswish", "aten::hardsigmoid", "aten::mish",
      "aten::softplus", "aten::softmax", "aten::log_softmax", "aten::clamp", "aten::clamp_min", "aten::exp",
      "aten::log", "aten::sqrt", "aten::rsqrt", "aten::pow", "aten::neg", "aten::abs",
      // sums and products
      "aten::add", "aten::sub", "aten::rsub", "aten::mul", "aten::div", "aten::matmul", "aten::bmm", "aten::baddbmm",
      "aten::scaled_dot_product_attention", "aten::mean", "aten::sum", "aten::amax", "aten::masked_fill", "aten::where",
      "aten::ne", "aten::eq", "aten::gt", "aten::lt", "aten::ge", "aten::le", "aten::layer_norm", "aten::group_norm",
      // pooling and sizes
      "aten::max_pool2d", "aten::avg_pool2d", "aten::adaptive_avg_pool2d", "aten::adaptive_max_pool2d",
      "aten::max_pool1d", "aten::avg_pool1d", "aten::adaptive_avg_pool1d", "aten::upsample_nearest2d",
      "aten::upsample_bilinear2d", "aten::pixel_shuffle", "aten::pad", "aten::constant_pad_nd",
      // shapes
      "aten::view", "aten::reshape", "aten::flatten", "aten::transpose", "aten::permute", "aten::t", "aten::select",
      "aten::slice", "aten::narrow", "aten::unsqueeze", "aten::squeeze", "aten::expand", "aten::expand_as",
      "aten::chunk", "aten::split", "aten::split_with_sizes", "aten::unbind", "aten::cat", "aten::stack",
      "aten::contiguous", "aten::size", "aten::dim", "aten::numel", "aten::to", "aten::type_as", "aten::float",
      "aten::zeros", "aten::zeros_like", "aten::ones_like", "aten::arange", "aten::detach", "aten::alias",
      "aten::view_as",
      // numbers
      "aten::Int", "aten::Float", "aten::Bool", "aten::ScalarImplicit", "aten::IntImplicit", "aten::FloatImplicit",
      "aten::floordiv", "aten::floor_divide", "aten::remainder", "aten::len", "aten::__getitem__", "aten::append",
      "aten::__and__", "aten::__or__", "aten::__not__", "aten::__isnot__", "aten::__is__", "prim::ListConstruct",
      "prim::ListUnpack", "prim::TupleConstruct", "prim::TupleUnpack", "prim::NumToTensor", "prim::dtype",
      "prim::device", "prim::layout", "prim::min", "prim::max", "prim::unchecked_cast", "prim::ConstantChunk"};
  return known.contains(name);
}

}  // namespace sotto::models

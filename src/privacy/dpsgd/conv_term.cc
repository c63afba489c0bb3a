#include "privacy/dpsgd/conv_term.h"

#include "privacy/dpsgd/costs.h"
#include "privacy/dpsgd/gram.h"
#include "privacy/dpsgd/term_of_layer.h"

#include <ATen/ATen.h>

namespace sotto::privacy {
namespace {

std::optional<Parameter> copy_of(const Parameter* parameter) {
  return parameter ? std::optional(*parameter) : std::nullopt;
}

}  // namespace

ConvTerm::ConvTerm(const models::Conv2d::Options& options, const Parameter* weight, const Parameter* bias)
    : options_(options), weight_(copy_of(weight)), bias_(copy_of(bias)) {}

void ConvTerm::measure(const std::vector<Use>& uses, Chunk& chunk) {
  for (const Use& use : uses) add_bias_rows(use);
  if (bias_) add_row_squares(bias_rows_, chunk.squares(bias_->group));
  if (!weight_) return;
  double* squares = chunk.squares(weight_->group);
  if (uses.size() == 1 && !stores(uses[0].input, uses[0].gradient)) {
    ghost_ = uses[0];
    const auto found =
        conv_gram_squares(ghost_.input, ghost_.gradient, {options_.kernel, options_.stride, options_.padding});
    for (size_t i = 0; i < found.size(); ++i) squares[i] += found[i];
  } else {
    for (const Use& use : uses) store(use);
    for (size_t i = 0; i < stored_.size(); ++i) add_row_squares(stored_[i].unsqueeze(0), squares + i);
  }
}

void ConvTerm::measure_rows(const models::ops::ConvShape& shape, const at::Tensor& rows,
                            const std::vector<double>& squares, Chunk& chunk) {
  const int64_t bias_at = models::ops::conv_row_bias_offset(shape);
  packed_ = {shape, rows.narrow(1, 0, bias_at), rows.narrow(1, bias_at, shape.filters)};
  if (weight_)
    for (size_t i = 0; i < squares.size(); ++i) chunk.squares(weight_->group)[i] += squares[i];
  if (bias_) add_row_squares(packed_->bias, chunk.squares(bias_->group));
}

void ConvTerm::add_weighted(const Chunk& chunk) {
  if (packed_) {
    add_packed(chunk);
  } else {
    if (bias_) add_weighted_rows(bias_->gradient, bias_rows_, chunk, bias_->group);
    if (weight_) add_stored(chunk);
  }
  forget();
}

void ConvTerm::add_packed(const Chunk& chunk) {
  if (bias_) add_weighted_rows(bias_->gradient, packed_->bias, chunk, bias_->group);
  if (!weight_) return;
  const at::Tensor sum = at::zeros({packed_->weight.size(1)});
  add_weighted_rows(sum, packed_->weight, chunk, weight_->group);
  models::ops::add_conv_row(packed_->shape, sum.data_ptr<float>(), weight_->gradient.data_ptr<float>());
}

void ConvTerm::add_stored(const Chunk& chunk) {
  if (stored_.empty()) {
    add_product(without_non_finite(ghost_.input, chunk).to(at::kDouble),
                scaled(ghost_.gradient.to(at::kDouble), chunk, weight_->group));
    return;
  }
  for (const int64_t i : chunk.non_finite()) stored_[static_cast<size_t>(i)] = at::Tensor();
  const float* factors = chunk.factors(weight_->group).data_ptr<float>();
  for (size_t i = 0; i < stored_.size(); ++i)
    if (stored_[i].defined()) weight_->gradient.add_(stored_[i], factors[i]);
}

// One matrix product per kernel offset, over all examples and positions: what this form is taken for (few positions,
// many channels) is where at::'s weight gradients are slowest. In doubles, as positions may cancel (gram.h).
void ConvTerm::add_product(const at::Tensor& input, const at::Tensor& gradient) const {
  const int64_t kernel = options_.kernel, stride = options_.stride, padding = options_.padding;
  const int64_t height = gradient.size(2), width = gradient.size(3);
  const at::Tensor outputs = gradient.permute({1, 0, 2, 3}).reshape({options_.out, -1});
  const at::Tensor pixels =
      at::constant_pad_nd(input, {padding, padding, padding, padding}).permute({0, 2, 3, 1}).contiguous();
  const at::Tensor products = at::empty({kernel, kernel, options_.out, options_.in}, gradient.options());
  for (int64_t y = 0; y < kernel; ++y)
    for (int64_t x = 0; x < kernel; ++x) {
      const at::Tensor seen = pixels.slice(1, y, y + (height - 1) * stride + 1, stride)
                                  .slice(2, x, x + (width - 1) * stride + 1, stride)
                                  .reshape({-1, options_.in});
      at::Tensor product = products[y][x];
      at::mm_out(product, outputs, seen);
    }
  weight_->gradient.add_(products.permute({2, 3, 0, 1}));
}

void ConvTerm::forget() {
  ghost_ = {};
  stored_.clear();
  packed_.reset();
  bias_rows_ = at::Tensor();
}

int64_t ConvTerm::kept_per_example(const at::Tensor& input, const at::Tensor& output) const {
  return weight_ && stores(input, output) ? weight_->value.numel() : output.numel() / output.size(0);
}

void ConvTerm::add_bias_rows(const Use& use) {
  if (!bias_) return;
  const at::Tensor sums = use.gradient.sum({2, 3});
  bias_rows_ = bias_rows_.defined() ? bias_rows_ + sums : sums;
}

bool ConvTerm::stores(const at::Tensor& input, const at::Tensor& output) const {
  if (options_.groups > 1) return true;
  const int64_t pixels = input.size(2) * input.size(3), positions = output.size(2) * output.size(3);
  const int64_t patch = options_.in * options_.kernel * options_.kernel;
  return storing_cost(positions, patch, options_.out) < gram_cost(pixels, positions, options_.in, options_.out);
}

// One weight gradient per example, as a tensor of its own: it comes from the convolution and is not copied again.
void ConvTerm::store(const Use& use) {
  const auto examples = static_cast<size_t>(use.input.size(0));
  const bool first = stored_.empty();
  stored_.resize(examples);
  for (size_t i = 0; i < examples; ++i) {
    const auto at = static_cast<int64_t>(i);
    const at::Tensor gradient = weight_gradient(use.input.narrow(0, at, 1), use.gradient.narrow(0, at, 1));
    stored_[i] = first ? gradient : stored_[i] + gradient;
  }
}

at::Tensor ConvTerm::weight_gradient(const at::Tensor& input, const at::Tensor& gradient) const {
  const int64_t stride = options_.stride, padding = options_.padding;
  return std::get<1>(at::convolution_backward(gradient, input, weight_->value, at::OptionalIntArrayRef(),
                                              {stride, stride}, {padding, padding}, {1, 1}, false, {0, 0},
                                              options_.groups, {false, true, false}));
}

std::unique_ptr<LayerTerm> conv_term(const models::Conv2d& conv, const Parameter* weight, const Parameter* bias) {
  return std::make_unique<ConvTerm>(conv.options(), weight, bias);
}

}  // namespace sotto::privacy

#include "privacy/dpsgd/layer_term.h"

#include "models/ops/kernels.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace sotto::privacy {
namespace {

// Each row contiguous, whatever lies between rows.
at::Tensor with_dense_rows(const at::Tensor& rows) {
  return rows.dim() == 2 && rows.stride(1) == 1 ? rows : rows.contiguous();
}

}  // namespace

void RowsTerm::measure(const std::vector<Use>& uses, Chunk& chunk) {
  kept_ = rows(uses.front());
  for (size_t use = 1; use < uses.size(); ++use) {
    const auto more = rows(uses[use]);
    for (size_t i = 0; i < kept_.size(); ++i) kept_[i] = kept_[i] + more[i];
  }
  for (size_t i = 0; i < kept_.size(); ++i) add_row_squares(kept_[i], chunk.squares(parameters_[i].group));
}

void RowsTerm::add_weighted(const Chunk& chunk) {
  for (size_t i = 0; i < kept_.size(); ++i)
    add_weighted_rows(parameters_[i].gradient, kept_[i], chunk, parameters_[i].group);
  kept_.clear();
}

int64_t RowsTerm::kept_per_example(const at::Tensor&, const at::Tensor&) const {
  int64_t floats = 0;
  for (const Parameter& parameter : parameters_) floats += parameter.value.numel();
  return floats;
}

void add_row_squares(const at::Tensor& rows, double* squares) {
  const at::Tensor dense = with_dense_rows(rows);
  const int64_t examples = dense.size(0), width = dense.numel() / std::max<int64_t>(examples, 1);
  for (int64_t i = 0; i < examples; ++i)
    squares[i] += models::ops::kernels().sum_squares(dense.data_ptr<float>() + i * dense.stride(0), width);
}

std::vector<double> squared_norms(const at::Tensor& vectors) {
  std::vector<double> squares(static_cast<size_t>(vectors.numel() / vectors.size(-1)), 0.0);
  add_row_squares(vectors.reshape({-1, vectors.size(-1)}), squares.data());
  return squares;
}

void add_weighted_rows(const at::Tensor& sum, const at::Tensor& rows, const Chunk& chunk, size_t group) {
  const at::Tensor dense = with_dense_rows(without_non_finite(rows, chunk));
  models::ops::kernels().add_weighted_rows(dense.data_ptr<float>(), dense.stride(0), dense.size(0), sum.numel(),
                                           chunk.factors(group).data_ptr<float>(), sum.data_ptr<float>());
}

at::Tensor without_non_finite(const at::Tensor& tensor, const Chunk& chunk) {
  if (chunk.non_finite().empty()) return tensor;
  return tensor.index_fill(0, at::tensor(chunk.non_finite(), at::kLong), 0.0);
}

at::Tensor scaled(const at::Tensor& tensor, const Chunk& chunk, size_t group) {
  std::vector<int64_t> shape(static_cast<size_t>(tensor.dim()), 1);
  shape[0] = chunk.examples();
  return without_non_finite(tensor, chunk) * chunk.factors(group).view(shape);
}

}  // namespace sotto::privacy

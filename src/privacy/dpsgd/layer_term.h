// One layer's share of the per-example gradients of a chunk.
//
// A term is first given what went into the layer and the gradient of what came out, and adds the squared norm of every
// example's gradient to the chunk; when the chunk has its factors, it adds the weighted sum to the parameters'
// gradients.
#pragma once

#include "privacy/dpsgd/chunk.h"

#include <ATen/core/Tensor.h>

#include <vector>

namespace sotto::privacy {

// One call of a layer; both tensors have the examples along their first dimension.
struct Use {
  at::Tensor input;
  at::Tensor gradient;  // of the output
};

class LayerTerm {
 public:
  LayerTerm() = default;
  virtual ~LayerTerm() = default;
  LayerTerm(const LayerTerm&) = delete;
  LayerTerm& operator=(const LayerTerm&) = delete;

  // All uses of the layer by one chunk; their gradients add up.
  virtual void measure(const std::vector<Use>& uses, Chunk& chunk) = 0;
  virtual void add_weighted(const Chunk& chunk) = 0;
  // Drops what was kept of a chunk that is not going to be summed.
  virtual void forget() = 0;

  // Floats kept per example between measuring and summing, beyond the layer's input; for planning memory.
  virtual int64_t kept_per_example(const at::Tensor& input, const at::Tensor& output) const = 0;
};

// Keeps one row of floats per example and parameter: for layers with few parameters.
class RowsTerm : public LayerTerm {
 public:
  explicit RowsTerm(std::vector<Parameter> parameters) : parameters_(std::move(parameters)) {}

  void measure(const std::vector<Use>& uses, Chunk& chunk) override;
  void add_weighted(const Chunk& chunk) override;
  void forget() override { kept_.clear(); }
  int64_t kept_per_example(const at::Tensor& input, const at::Tensor& output) const override;

 protected:
  // Per parameter [examples, elements].
  virtual std::vector<at::Tensor> rows(const Use& use) const = 0;

 private:
  std::vector<Parameter> parameters_;
  std::vector<at::Tensor> kept_;
};

// Adds the squared norm of every row [examples, …] to squares.
void add_row_squares(const at::Tensor& rows, double* squares);
// Squared norms of vectors along the last dimension, in double precision, in the order of the other dimensions.
std::vector<double> squared_norms(const at::Tensor& vectors);
// sum += Σ_i factors_i rows_i, leaving out the examples that are not finite; `sum` is contiguous.
void add_weighted_rows(const at::Tensor& sum, const at::Tensor& rows, const Chunk& chunk, size_t group);
// `tensor` with the examples that are not finite set to zero; itself if there are none.
at::Tensor without_non_finite(const at::Tensor& tensor, const Chunk& chunk);
// tensor · factor of its example.
at::Tensor scaled(const at::Tensor& tensor, const Chunk& chunk, size_t group);

}  // namespace sotto::privacy

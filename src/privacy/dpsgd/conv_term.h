// A convolution's term.
#pragma once

#include "models/layers.h"
#include "models/ops/direct_conv.h"
#include "privacy/dpsgd/layer_term.h"

#include <optional>
#include <vector>

namespace sotto::privacy {

// Large images with few channels: one weight gradient per example, kept. Small images with many channels: norms from
// Gram matrices and one weighted product. Fused blocks bring their rows themselves.
class ConvTerm : public LayerTerm {
 public:
  ConvTerm(const models::Conv2d::Options& options, const Parameter* weight, const Parameter* bias);

  void measure(const std::vector<Use>& uses, Chunk& chunk) override;
  // Instead of measure(): packed rows [examples, conv_row_floats(shape)] and the weights' squared norms.
  void measure_rows(const models::ops::ConvShape& shape, const at::Tensor& rows, const std::vector<double>& squares,
                    Chunk& chunk);
  void add_weighted(const Chunk& chunk) override;
  void forget() override;
  int64_t kept_per_example(const at::Tensor& input, const at::Tensor& output) const override;

 private:
  struct Packed {
    models::ops::ConvShape shape;
    at::Tensor weight, bias;  // parts of the packed rows
  };

  void add_bias_rows(const Use& use);
  bool stores(const at::Tensor& input, const at::Tensor& output) const;
  void store(const Use& use);
  at::Tensor weight_gradient(const at::Tensor& input, const at::Tensor& gradient) const;
  void add_packed(const Chunk& chunk);
  void add_stored(const Chunk& chunk);
  void add_product(const at::Tensor& input, const at::Tensor& gradient) const;

  models::Conv2d::Options options_;
  std::optional<Parameter> weight_, bias_;
  // What is kept of a chunk: one of the first three for the weight.
  Use ghost_;
  std::vector<at::Tensor> stored_;
  std::optional<Packed> packed_;
  at::Tensor bias_rows_;
};

}  // namespace sotto::privacy

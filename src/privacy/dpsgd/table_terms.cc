#include "privacy/dpsgd/term_of_layer.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <numeric>

namespace sotto::privacy {
namespace {

// Row v of an example's gradient is the sum of its output gradients where the id is v: as sparse as the example.
class EmbeddingTerm : public LayerTerm {
 public:
  explicit EmbeddingTerm(const Parameter& weight) : weight_(weight) {}

  void measure(const std::vector<Use>& uses, Chunk& chunk) override {
    std::vector<at::Tensor> ids, gradients;
    for (const Use& use : uses) {
      ids.push_back(use.input.reshape({chunk.examples(), -1}));
      gradients.push_back(use.gradient.reshape({chunk.examples(), -1, use.gradient.size(-1)}));
    }
    ids_ = at::cat(ids, 1).contiguous();
    gradients_ = (gradients.size() == 1 ? gradients.front() : at::cat(gradients, 1)).contiguous();
    double* squares = chunk.squares(weight_.group);
    for (int64_t i = 0; i < chunk.examples(); ++i) squares[i] += square_of(i);
  }

  void add_weighted(const Chunk& chunk) override {
    at::Tensor sum = weight_.gradient;
    sum.index_add_(0, ids_.flatten(), scaled(gradients_, chunk, weight_.group).flatten(0, 1));
    forget();
  }

  void forget() override { ids_ = gradients_ = at::Tensor(); }

  int64_t kept_per_example(const at::Tensor&, const at::Tensor& output) const override {
    return output.numel() / output.size(0);
  }

 private:
  double square_of(int64_t example) const {
    const int64_t length = ids_.size(1), width = gradients_.size(2);
    const int64_t* ids = ids_.data_ptr<int64_t>() + example * length;
    const float* gradients = gradients_.data_ptr<float>() + example * length * width;
    std::vector<int64_t> order(static_cast<size_t>(length));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return ids[a] < ids[b]; });
    std::vector<double> row(static_cast<size_t>(width));
    double square = 0.0;
    for (size_t begin = 0, end = 0; begin < order.size(); begin = end) {
      std::fill(row.begin(), row.end(), 0.0);
      for (end = begin; end < order.size() && ids[order[end]] == ids[order[begin]]; ++end)
        for (size_t k = 0; k < row.size(); ++k) row[k] += gradients[order[end] * width + static_cast<int64_t>(k)];
      for (const double value : row) square += value * value;
    }
    return square;
  }

  Parameter weight_;
  at::Tensor ids_, gradients_;
};

// y = x + weight: the output's gradient is the example's row.
class PositionTerm : public RowsTerm {
 public:
  explicit PositionTerm(const Parameter& weight) : RowsTerm({weight}) {}

 protected:
  std::vector<at::Tensor> rows(const Use& use) const override { return {use.gradient.flatten(1)}; }
};

}  // namespace

std::unique_ptr<LayerTerm> embedding_term(const Parameter& weight) {
  return std::make_unique<EmbeddingTerm>(weight);
}

std::unique_ptr<LayerTerm> position_term(const Parameter& weight) {
  return std::make_unique<PositionTerm>(weight);
}

}  // namespace sotto::privacy

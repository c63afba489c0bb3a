#include "privacy/dpsgd/gram.h"
#include "privacy/dpsgd/term_of_layer.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <vector>

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

  // Row by row, in doubles: gradients at equal ids may cancel, within an example and beyond.
  void add_weighted(const Chunk& chunk) override {
    const at::Tensor weighted = scaled(gradients_.to(at::kDouble), chunk, weight_.group);
    const double* values = weighted.data_ptr<double>();
    const int64_t width = weighted.size(2);
    for_each_id(0, ids_.numel(), [&](int64_t id, std::span<const int64_t> places) {
      float* out = weight_.gradient.data_ptr<float>() + id * width;
      for (int64_t k = 0; k < width; ++k) {
        double sum = out[k];
        for (const int64_t place : places) sum += values[place * width + k];
        out[k] = static_cast<float>(sum);
      }
    });
    forget();
  }

  void forget() override { ids_ = gradients_ = at::Tensor(); }

  int64_t kept_per_example(const at::Tensor&, const at::Tensor& output) const override {
    return output.numel() / output.size(0);
  }

 private:
  // Calls `use` with every id that occurs at places begin … end, in order, and the places where it does.
  template <typename Use>
  void for_each_id(int64_t begin, int64_t end, const Use& use) const {
    const int64_t* ids = ids_.data_ptr<int64_t>();
    std::vector<int64_t> order(static_cast<size_t>(end - begin));
    std::iota(order.begin(), order.end(), begin);
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return ids[a] < ids[b]; });
    for (auto first = order.begin(); first != order.end();) {
      const auto last = std::find_if(first, order.end(), [&](int64_t place) { return ids[place] != ids[*first]; });
      use(ids[*first], std::span<const int64_t>(first, last));
      first = last;
    }
  }

  double square_of(int64_t example) const {
    const int64_t length = ids_.size(1), width = gradients_.size(2);
    const float* gradients = gradients_.data_ptr<float>();
    double square = 0.0, spread = 0.0;
    for_each_id(example * length, (example + 1) * length, [&](int64_t, std::span<const int64_t> places) {
      for (int64_t k = 0; k < width; ++k) {
        double sum = 0.0;
        for (const int64_t place : places) sum += gradients[place * width + k];
        square += sum * sum;
      }
    });
    for (int64_t place = example * length; place < (example + 1) * length; ++place) {
      double own = 0.0;
      for (int64_t k = 0; k < width; ++k) own += std::pow(gradients[place * width + k], 2);
      spread += std::sqrt(own);
    }
    return rounded_up(square, spread, length * length + width);
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

#include "models/ops/outer.h"
#include "privacy/dpsgd/costs.h"
#include "privacy/dpsgd/gram.h"
#include "privacy/dpsgd/term_of_layer.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <optional>

namespace sotto::privacy {
namespace {

std::optional<Parameter> copy_of(const Parameter* parameter) {
  return parameter ? std::optional(*parameter) : std::nullopt;
}

// weight [out, in]: Σ_t g_t a_tᵀ. bias [out]: Σ_t g_t.
class LinearTerm : public LayerTerm {
 public:
  LinearTerm(const Parameter* weight, const Parameter* bias) : weight_(copy_of(weight)), bias_(copy_of(bias)) {}

  void measure(const std::vector<Use>& uses, Chunk& chunk) override {
    join(uses, chunk.examples());
    if (bias_) {
      bias_rows_ = g_.size(1) == 1 ? g_.select(1, 0) : g_.sum(1);
      add_row_squares(bias_rows_, chunk.squares(bias_->group));
    }
    if (weight_) measure_weight(chunk.squares(weight_->group));
  }

  void add_weighted(const Chunk& chunk) override {
    if (bias_) add_weighted_rows(bias_->gradient, bias_rows_, chunk, bias_->group);
    if (weight_ && stored_) {
      add_stored(chunk);
    } else if (weight_) {
      add_product(chunk);
    }
    forget();
  }

  void forget() override { a_ = g_ = bias_rows_ = at::Tensor(); }

  int64_t kept_per_example(const at::Tensor&, const at::Tensor& output) const override {
    const int64_t length = output.numel() / output.size(0) / output.size(-1);
    return weight_ && stores(length) ? weight_->value.numel() : output.numel() / output.size(0);
  }

 private:
  // As [examples, length, width]; several uses are one longer sequence.
  void join(const std::vector<Use>& uses, int64_t examples) {
    std::vector<at::Tensor> a, g;
    for (const Use& use : uses) {
      a.push_back(use.input.reshape({examples, -1, use.input.size(-1)}));
      g.push_back(use.gradient.reshape({examples, -1, use.gradient.size(-1)}));
    }
    a_ = (a.size() == 1 ? a.front() : at::cat(a, 1)).contiguous();
    g_ = (g.size() == 1 ? g.front() : at::cat(g, 1)).contiguous();
  }

  bool stores(int64_t length) const {
    const int64_t out = weight_->value.size(0), in = weight_->value.size(1);
    return length > 1 && storing_cost(length, in, out) < gram_cost(length, length, in, out);
  }

  void measure_weight(double* squares) {
    stored_ = stores(g_.size(1));
    if (stored_) {
      store(squares);
      a_ = g_ = at::Tensor();
    } else if (g_.size(1) == 1) {
      const auto a = squared_norms(a_), g = squared_norms(g_);
      for (size_t i = 0; i < a.size(); ++i) squares[i] += a[i] * g[i];
    } else {
      const auto found = gram_squares(a_, g_);
      for (size_t i = 0; i < found.size(); ++i) squares[i] += found[i];
    }
  }

  void store(double* squares) {
    shape_ = {g_.size(1), a_.size(2), g_.size(2)};
    const int64_t examples = g_.size(0), floats = models::ops::outer_floats(shape_);
    if (!rows_.defined() || rows_.size(0) < examples) rows_ = at::empty({examples, floats}, g_.options());
    const float *a = a_.data_ptr<float>(), *g = g_.data_ptr<float>();
    float* rows = rows_.data_ptr<float>();
    at::parallel_for(0, examples, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        squares[i] += models::ops::store_outer(shape_, a + i * shape_.length * shape_.in,
                                               g + i * shape_.length * shape_.out, rows + i * floats);
    });
  }

  // Positions may cancel, so that their sum is exact only in doubles (gram.h).
  void add_product(const Chunk& chunk) {
    const bool one_position = g_.size(1) == 1;
    const auto precise = [&](const at::Tensor& values) { return one_position ? values : values.to(at::kDouble); };
    const at::Tensor g = scaled(precise(g_), chunk, weight_->group).flatten(0, 1);
    const at::Tensor a = precise(without_non_finite(a_, chunk)).flatten(0, 1);
    at::Tensor sum = weight_->gradient;
    if (one_position) {
      sum.addmm_(g.t(), a);
    } else {
      sum.add_(g.t().mm(a));
    }
  }

  void add_stored(const Chunk& chunk) {
    const at::Tensor sum = at::zeros({rows_.size(1)});
    add_weighted_rows(sum, rows_.narrow(0, 0, chunk.examples()), chunk, weight_->group);
    models::ops::add_outer(shape_, sum.data_ptr<float>(), weight_->gradient.data_ptr<float>());
  }

  std::optional<Parameter> weight_, bias_;
  at::Tensor a_, g_, bias_rows_;
  bool stored_ = false;
  models::ops::OuterShape shape_{};
  at::Tensor rows_;  // kept from chunk to chunk: fresh memory is slow
};

}  // namespace

std::unique_ptr<LayerTerm> linear_term(const Parameter* weight, const Parameter* bias) {
  return std::make_unique<LinearTerm>(weight, bias);
}

}  // namespace sotto::privacy

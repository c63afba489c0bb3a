#include "privacy/dpsgd/term_of_layer.h"

#include <ATen/ATen.h>

namespace sotto::privacy {
namespace {

// y = γ x̂ + β: γ's gradient is Σ x̂ g over positions, β's is Σ g.
class NormTerm : public RowsTerm {
 public:
  NormTerm(const Parameter* weight, const Parameter* bias)
      : RowsTerm(listed(weight, bias)), scale_(weight != nullptr), shift_(bias != nullptr) {}

 protected:
  std::vector<at::Tensor> rows(const Use& use) const override {
    std::vector<at::Tensor> found;
    if (scale_) found.push_back(sum_positions(normalised(use.input) * use.gradient));
    if (shift_) found.push_back(sum_positions(use.gradient));
    return found;
  }

  virtual at::Tensor normalised(const at::Tensor& input) const = 0;
  // [examples, channels]
  virtual at::Tensor sum_positions(const at::Tensor& values) const { return values.sum({2, 3}); }

 private:
  static std::vector<Parameter> listed(const Parameter* weight, const Parameter* bias) {
    std::vector<Parameter> found;
    if (weight) found.push_back(*weight);
    if (bias) found.push_back(*bias);
    return found;
  }

  bool scale_, shift_;
};

class GroupNormTerm : public NormTerm {
 public:
  GroupNormTerm(int64_t groups, const Parameter* weight, const Parameter* bias)
      : NormTerm(weight, bias), groups_(groups) {}

 protected:
  at::Tensor normalised(const at::Tensor& input) const override {
    return at::group_norm(input, groups_, {}, {}, models::GroupNorm::kEps);
  }

 private:
  int64_t groups_;
};

class LayerNormTerm : public NormTerm {
 public:
  LayerNormTerm(double eps, const Parameter* weight, const Parameter* bias) : NormTerm(weight, bias), eps_(eps) {}

 protected:
  at::Tensor normalised(const at::Tensor& input) const override {
    return at::layer_norm(input, {input.size(-1)}, {}, {}, eps_);
  }
  at::Tensor sum_positions(const at::Tensor& values) const override {
    return values.dim() == 2 ? values : values.flatten(1, -2).sum(1);
  }

 private:
  double eps_;
};

// With running statistics it is affine. The statistics are shared with the layer, not copied.
class BatchNormTerm : public NormTerm {
 public:
  BatchNormTerm(const models::BatchNorm2d& norm, const Parameter* weight, const Parameter* bias)
      : NormTerm(weight, bias), mean_(norm.running_mean), variance_(norm.running_var), eps_(norm.eps()) {}

 protected:
  at::Tensor normalised(const at::Tensor& input) const override {
    return (input - mean_.view({1, -1, 1, 1})) * (variance_ + eps_).rsqrt().view({1, -1, 1, 1});
  }

 private:
  at::Tensor mean_, variance_;
  double eps_;
};

}  // namespace

std::unique_ptr<LayerTerm> norm_term(const models::GroupNorm& norm, const Parameter* weight, const Parameter* bias) {
  return std::make_unique<GroupNormTerm>(norm.groups(), weight, bias);
}

std::unique_ptr<LayerTerm> norm_term(const models::LayerNorm& norm, const Parameter* weight, const Parameter* bias) {
  return std::make_unique<LayerNormTerm>(norm.eps(), weight, bias);
}

std::unique_ptr<LayerTerm> norm_term(const models::BatchNorm2d& norm, const Parameter* weight, const Parameter* bias) {
  return std::make_unique<BatchNormTerm>(norm, weight, bias);
}

}  // namespace sotto::privacy

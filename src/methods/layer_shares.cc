#include "methods/layer_shares.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace sotto::methods {
namespace {

// A layer that starts at zero must be able to leave it.
constexpr double kLeastWeights = 0.1;

double root(int64_t coordinates) {
  return std::sqrt(static_cast<double>(coordinates));
}

class Deal {
 public:
  Deal(const LayerRule& rule, const std::vector<LayerFacts>& layers, double clip)
      : rule_(rule), layers_(layers), clip_(clip), shares_(layers.size()) {}

  std::vector<privacy::LayerShare> run(double noise) {
    for (size_t i = 0; i < layers_.size(); ++i) {
      shares_[i].clip = may_be_trained(layers_[i]) ? 1 : 0;
    }
    share_out();
    while (const auto weakest = find_weakest(noise)) {
      shares_[*weakest] = {};
      share_out();
    }
    return shares_;
  }

 private:
  bool may_be_trained(const LayerFacts& layer) const {
    const bool named = rule_.layers.empty() || std::any_of(rule_.layers.begin(), rule_.layers.end(),
                                                           [&](const auto& n) { return layer.name.starts_with(n); });
    return named && layer.norm >= rule_.least_norm && layer.coordinates > 0;
  }

  double relative_bound(const LayerFacts& layer) const {
    if (rule_.bounds == "equal") return 1;
    if (rule_.bounds == "weights") return std::max(layer.norm, kLeastWeights);
    return rule_.bounds == "probe" ? layer.need : root(layer.coordinates);
  }

  double importance(const LayerFacts& layer) const {
    if (!rule_.estimate) return 1;
    return std::pow(std::clamp(layer.estimate, rule_.kl_least, rule_.kl_bound), rule_.kl_exponent);
  }

  // Bounds and weights of those that are still chosen.
  void share_out() {
    double square = 0, total = 0;
    for (size_t i = 0; i < layers_.size(); ++i) {
      if (shares_[i].chosen()) square += std::pow(relative_bound(layers_[i]), 2);
    }
    for (size_t i = 0; i < layers_.size(); ++i) {
      privacy::LayerShare& share = shares_[i];
      if (!share.chosen()) continue;
      share.clip = clip_ * relative_bound(layers_[i]) / std::sqrt(square);
      share.weight = share.clip * std::sqrt(importance(layers_[i])) * root(layers_[i].coordinates);
      total += share.weight;
    }
    for (privacy::LayerShare& share : shares_) {
      if (share.chosen()) share.weight /= total;
    }
  }

  // A layer's bound over the norm of its noise does not depend on the bound but through the weight.
  std::optional<size_t> find_weakest(double noise) const {
    std::optional<size_t> weakest;
    double least = rule_.least_signal;
    for (size_t i = 0; i < layers_.size(); ++i) {
      if (!shares_[i].chosen()) continue;
      const double signal = std::sqrt(shares_[i].weight) / (noise * root(layers_[i].coordinates));
      if (signal >= least) continue;
      least = signal;
      weakest = i;
    }
    const auto chosen = std::count_if(shares_.begin(), shares_.end(), [](const auto& share) { return share.chosen(); });
    return chosen > 1 ? weakest : std::nullopt;
  }

  const LayerRule& rule_;
  const std::vector<LayerFacts>& layers_;
  double clip_;
  std::vector<privacy::LayerShare> shares_;
};

}  // namespace

LayerRule read_layer_rule(config::Section& section) {
  LayerRule rule;
  rule.layers = section.texts("layers", rule.layers);
  rule.bounds = section.one_of("bounds", rule.bounds, {"size", "equal", "weights", "probe"});
  rule.least_norm = section.number("least_norm", rule.least_norm, config::kNonNegative);
  rule.least_signal = section.number("least_signal", rule.least_signal, config::kNonNegative);
  rule.estimate = section.boolean("estimate", rule.estimate);
  rule.kl_least = section.number("kl_least", rule.kl_least, config::kPositive);
  rule.kl_bound = section.number("kl_bound", rule.kl_bound, config::kPositive);
  rule.kl_exponent = section.number("kl_exponent", rule.kl_exponent, config::kNonNegative);
  if (rule.kl_bound < rule.kl_least) section.fail("kl_bound", "must not be below kl_least");
  return rule;
}

std::vector<privacy::LayerShare> deal_layers(const LayerRule& rule, const std::vector<LayerFacts>& layers, double clip,
                                             double noise) {
  return Deal(rule, layers, clip).run(noise);
}

}  // namespace sotto::methods

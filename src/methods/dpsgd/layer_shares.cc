#include "methods/dpsgd/layer_shares.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace sotto::methods {
namespace {

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
    while (const auto loudest = find_loudest(noise)) {
      shares_[*loudest] = {};
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
    if (rule_.bounds == LayerBounds::kEqual) return 1;
    return rule_.bounds == LayerBounds::kProbe ? layer.need : root(layer.coordinates);
  }

  double importance(const LayerFacts& layer) const {
    if (!rule_.estimate) return 1;
    return std::pow(std::clamp(layer.estimate, rule_.kl_least, rule_.kl_bound), rule_.kl_exponent);
  }

  // What a layer's noise energy is divided by, where its bound is r_j.
  double weight(size_t i) const {
    return relative_bound(layers_[i]) * std::sqrt(importance(layers_[i])) * root(layers_[i].coordinates);
  }

  // Bounds and weights of those that are still chosen.
  void share_out() {
    double square = 0, total = 0;
    for (size_t i = 0; i < layers_.size(); ++i) {
      if (!shares_[i].chosen()) continue;
      square += std::pow(relative_bound(layers_[i]), 2);
      total += weight(i);
    }
    for (size_t i = 0; i < layers_.size(); ++i) {
      if (!shares_[i].chosen()) continue;
      const double kept = clip_ * relative_bound(layers_[i]) / std::sqrt(square);
      const double share = weight(i) / total;
      shares_[i] = rule_.joint ? privacy::LayerShare{.clip = kept / std::sqrt(share)}
                               : privacy::LayerShare{.clip = kept, .weight = share};
    }
  }

  // Where the bound is less than the wanted part of the noise, the layer that adds most to the noise; never the last
  // one, nor the classifier.
  std::optional<size_t> find_loudest(double noise) const {
    std::optional<size_t> loudest;
    double largest = 0, energy = 0;
    for (size_t i = 0; i < layers_.size(); ++i) {
      if (!shares_[i].chosen()) continue;
      const double own = static_cast<double>(layers_[i].coordinates) * std::pow(noise_of(i), 2);
      energy += own;
      if (own <= largest || layers_[i].classifier) continue;
      largest = own;
      loudest = i;
    }
    const auto chosen = std::count_if(shares_.begin(), shares_.end(), [](const auto& share) { return share.chosen(); });
    const bool enough = clip_ >= rule_.least_signal * noise * std::sqrt(energy);
    return enough || chosen < 2 ? std::nullopt : loudest;
  }

  // Of one coordinate, if the multiplier is 1.
  double noise_of(size_t i) const {
    return rule_.joint ? shares_[i].clip : shares_[i].clip / std::sqrt(shares_[i].weight);
  }

  const LayerRule& rule_;
  const std::vector<LayerFacts>& layers_;
  double clip_;
  std::vector<privacy::LayerShare> shares_;
};

}  // namespace

LayerRule read_layer_rule(settings::Section& section) {
  LayerRule rule;
  rule.layers = section.texts("layers", rule.layers);
  rule.joint = section.one_of("clipping", "joint", {"joint", "layers"}) == "joint";
  rule.bounds = section.choice("bounds", rule.bounds);
  rule.least_norm = section.number("least_norm", rule.least_norm, settings::kNonNegative);
  rule.least_signal = section.number("least_signal", rule.least_signal, settings::kNonNegative);
  // What is printed has it; sound, it is more than a twentieth of a round and changes nothing that could be measured.
  rule.estimate = section.boolean("estimate", section.resolved().value("variant", "sound") == "paper");
  rule.kl_least = section.number("kl_least", rule.kl_least, settings::kPositive);
  rule.kl_bound = section.number("kl_bound", rule.kl_bound, settings::kPositive);
  rule.kl_exponent = section.number("kl_exponent", rule.kl_exponent, settings::kNonNegative);
  if (rule.kl_bound < rule.kl_least) section.fail("kl_bound", "must not be below kl_least");
  const LayerRule fallback;
  const char* where = "without estimate = true";
  section.only_if(rule.estimate, "kl_least", rule.kl_least == fallback.kl_least, where);
  section.only_if(rule.estimate, "kl_bound", rule.kl_bound == fallback.kl_bound, where);
  section.only_if(rule.estimate, "kl_exponent", rule.kl_exponent == fallback.kl_exponent, where);
  return rule;
}

std::vector<privacy::LayerShare> deal_layers(const LayerRule& rule, const std::vector<LayerFacts>& layers, double clip,
                                             double noise) {
  return Deal(rule, layers, clip).run(noise);
}

}  // namespace sotto::methods

// How LaDP-FL deals clipping and noise to layers. Everything that it looks at is public.
#pragma once

#include "privacy/dpsgd/noisy_descent.h"
#include "settings/section.h"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace sotto::methods {

// How the bound is dealt to layers.
enum class LayerBounds {
  kSize,  // C_j ∝ √d_j
  kEqual,
  kProbe,  // as the norms of gradients of records that nobody holds
};
constexpr auto choices(LayerBounds) {
  return std::to_array<settings::Choice<LayerBounds>>(
      {{LayerBounds::kSize, "size"}, {LayerBounds::kEqual, "equal"}, {LayerBounds::kProbe, "probe"}});
}

struct LayerRule {
  std::vector<std::string> layers = {};  // the beginnings of the names of those that may be trained; none: all
  bool joint = true;  // a record's gradient is bounded as a whole, each layer measured by its own bound; or by layers
  LayerBounds bounds = LayerBounds::kSize;
  double least_norm = 0;     // R: layers whose weights have a smaller norm in the global model are not trained
  double least_signal = 0;   // nor the loudest ones, until the bound is this part of a round's mean noise or more
  bool estimate = false;     // noise follows the estimates P_j; otherwise it is of least energy
  double kl_least = 1e-6;    // P_j is kept at or above this,
  double kl_bound = 1.0;     // and at or below this (B)
  double kl_exponent = 1.0;  // a layer's importance is P_j to this power; at 4 its noise is ∝ 1/P_j
};

// Keys layers, clipping, bounds, least_norm, least_signal, estimate, kl_least, kl_bound, kl_exponent.
LayerRule read_layer_rule(settings::Section& section);

struct LayerFacts {
  std::string name = {};
  bool classifier = false;
  int64_t coordinates = 0;
  double norm = 0;      // of its weights in the global model
  double need = 1;      // the norm of a typical gradient, from records that nobody holds
  double estimate = 1;  // P_j, from what the client released before
};

// Shares for `layers`, such that a gradient whose layers have norms ∝ r_j (as `bounds` says) is kept up to the norm
// `clip`, and that its noise is least where each coordinate of layer j counts a_j. Layer by layer: C_j ∝ r_j and
// ω_j ∝ C_j √(a_j d_j). Together: C_j² ∝ r_j / √(a_j d_j). `noise` is that of one coordinate of a round's mean update
// relative to a bound that has the whole budget. Nothing may be chosen.
std::vector<privacy::LayerShare> deal_layers(const LayerRule& rule, const std::vector<LayerFacts>& layers, double clip,
                                             double noise);

}  // namespace sotto::methods

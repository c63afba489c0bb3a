// How prototypes leave a client: the keys of [method] that say so.
#pragma once

#include "settings/section.h"

#include <array>

namespace sotto::methods {

enum class PrototypeMechanism {
  kLocal,  // not at all: every client trains alone
  kNone,   // in the clear
  kIgpp,   // isotropic noise
  kVpp     // dimensions are parted into a group A that should carry the classes and a rest B, each bounded and noised
           // by itself
};
constexpr auto choices(PrototypeMechanism) {
  return std::to_array<settings::Choice<PrototypeMechanism>>({{PrototypeMechanism::kLocal, "local"},
                                                              {PrototypeMechanism::kNone, "none"},
                                                              {PrototypeMechanism::kIgpp, "igpp"},
                                                              {PrototypeMechanism::kVpp, "vpp"}});
}

// Where group A comes from.
enum class Selection {
  kPaper,   // private scores, in every release
  kOnce,    // the same, in the first one alone
  kFree,    // global prototypes, which are public
  kRandom,  // chance
  kOracle   // private scores without noise, for comparison
};
constexpr auto choices(Selection) {
  return std::to_array<settings::Choice<Selection>>({{Selection::kPaper, "paper"},
                                                     {Selection::kOnce, "once"},
                                                     {Selection::kFree, "free"},
                                                     {Selection::kRandom, "random"},
                                                     {Selection::kOracle, "oracle"}});
}

// By which noise private scores choose.
enum class SelectionNoise {
  kAuto,     // gumbel, and laplace as printed
  kLaplace,  // one-shot Laplace noise for a share of ε
  kGumbel    // picks of the exponential mechanism for what the values leave of the budget: never more noise
};
constexpr auto choices(SelectionNoise) {
  return std::to_array<settings::Choice<SelectionNoise>>(
      {{SelectionNoise::kAuto, "auto"}, {SelectionNoise::kLaplace, "laplace"}, {SelectionNoise::kGumbel, "gumbel"}});
}

// How noise is shared between A and B.
enum class Weighting { kPaper, kBest, kEven };
constexpr auto choices(Weighting) {
  return std::to_array<settings::Choice<Weighting>>(
      {{Weighting::kPaper, "paper"}, {Weighting::kBest, "best"}, {Weighting::kEven, "even"}});
}

struct ReleaseOptions {
  PrototypeMechanism mechanism = PrototypeMechanism::kIgpp;
  Selection selection = Selection::kPaper;
  SelectionNoise selection_noise = SelectionNoise::kAuto;
  Weighting weighting = Weighting::kPaper;
  bool once = false;           // one release with the whole budget, not one in every round
  bool closing_round = false;  // nothing is released in the last round, which fine-tunes against what came before
  double radius = 10;          // R
  double rho = 0.2;            // share of the dimensions in group A
  double split = 0.1;          // r: share of ε for private selections
  double high = 0.1;           // H: scores are cut to [0, H]
  double zeta = 1e-8;
  double count_share = 0.1;   // one-sided adjacencies: what counting costs of 1/z²
  bool centre = false;        // sound: the first release is the mean of all records, which later ones are freed of
  double centre_share = 0.1;  // what that costs of 1/z²
  double encoder_share = 0;   // sound: what noisy training of the encoder costs of 1/z²

  bool silent() const { return mechanism == PrototypeMechanism::kLocal; }
  bool noisy() const { return mechanism == PrototypeMechanism::kIgpp || parted(); }
  bool parted() const { return mechanism == PrototypeMechanism::kVpp; }
  // Whether the selection is paid for out of the client's ε.
  bool pays_for_selection() const {
    return parted() && (selection == Selection::kPaper || selection == Selection::kOnce);
  }
};

ReleaseOptions read_release_options(settings::Section& section);

}  // namespace sotto::methods

// Whether a run's ε holds of what was sent: the one place that decides whether it is called proven or simulated.
#pragma once

#include "privacy/terms.h"

#include <array>
#include <string>
#include <string_view>

namespace sotto::privacy {

enum class Basis {
  kSimulated,  // the noise can be recomputed from the run's seed: ε is what secure noise would have given
  kProven      // the noise came from the operating system's entropy, or there was none: a theorem about what was sent
};
constexpr auto choices(Basis) {
  return std::to_array<settings::Choice<Basis>>({{Basis::kSimulated, "simulated"}, {Basis::kProven, "proven"}});
}

constexpr Basis basis_of(Generator generator) {
  return generator == Generator::kSecure ? Basis::kProven : Basis::kSimulated;
}

// `generator` in the words of Ledger::generator. Without noise ε is 0 or ∞, and true whoever knows the seed.
inline Basis basis_of(std::string_view generator) {
  return generator == "none" ? Basis::kProven : basis_of(settings::from_word<Generator>(generator));
}

// Of several runs under one heading: proven if each of them is.
constexpr Basis weaker(Basis a, Basis b) {
  return a == b ? a : Basis::kSimulated;
}

// What such an ε is called.
inline std::string epsilon_name(Basis basis) {
  return settings::word(basis) + " ε";
}

// Why an ε is simulated; "" of one that is proven. `sampled_cohorts`: ε counts on nobody knowing who takes part.
inline std::string why_simulated(Basis basis, bool sampled_cohorts) {
  if (basis == Basis::kProven) return "";
  return sampled_cohorts ? "noise and cohorts can be recomputed from the seed"
                         : "noise can be recomputed from the seed";
}

}  // namespace sotto::privacy

#include "privacy/noise/uniform.h"

#include "base/error.h"

#include <cmath>
#include <set>

namespace sotto::privacy {

uint64_t uniform_below(uint64_t bound, NoiseSource& source) {
  SOTTO_INVARIANT(bound > 0);
  const uint64_t rejected = -bound % bound;  // 2^64 mod bound
  uint64_t draw = source.bits();
  while (draw < rejected) draw = source.bits();
  return draw % bound;
}

// Compares a uniform with the probability's binary expansion, 64 digits at a time.
bool bernoulli(double probability, NoiseSource& source) {
  SOTTO_INVARIANT(probability >= 0 && probability <= 1);
  if (probability == 1) return true;
  while (probability > 0) {
    const double scaled = std::ldexp(probability, 64);
    const auto digits = static_cast<uint64_t>(scaled);
    const uint64_t drawn = source.bits();
    if (drawn != digits) return drawn < digits;
    probability = scaled - static_cast<double>(digits);
  }
  return false;
}

bool bernoulli(uint64_t numerator, uint64_t denominator, NoiseSource& source) {
  SOTTO_INVARIANT(numerator <= denominator);
  return denominator == 1 ? numerator == 1 : uniform_below(denominator, source) < numerator;
}

bool bernoulli_exp_minus(uint64_t numerator, uint64_t denominator, NoiseSource& source) {
  SOTTO_INVARIANT(denominator > 0);
  const auto certain = [] { return true; };
  for (; numerator >= denominator; numerator -= denominator) {
    if (!bernoulli_exp_minus(certain, source)) return false;
  }
  return bernoulli_exp_minus([&] { return bernoulli(numerator, denominator, source); }, source);
}

std::vector<int64_t> poisson_sample(int64_t count, double probability, NoiseSource& source) {
  std::vector<int64_t> chosen;
  for (int64_t i = 0; i < count; ++i) {
    if (bernoulli(probability, source)) chosen.push_back(i);
  }
  return chosen;
}

// Floyd's algorithm: what is drawn last of those below `top` stands for `top` if it was drawn before.
std::vector<int64_t> fixed_sample(int64_t count, int64_t size, NoiseSource& source) {
  std::set<int64_t> chosen;
  for (int64_t top = count - size; top < count; ++top) {
    const auto drawn = static_cast<int64_t>(uniform_below(static_cast<uint64_t>(top) + 1, source));
    if (!chosen.insert(drawn).second) chosen.insert(top);
  }
  return {chosen.begin(), chosen.end()};
}

}  // namespace sotto::privacy

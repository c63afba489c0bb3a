// Exact discrete decisions from random bits. Every uniform has 64 bits, and more are drawn whenever they could matter.
#pragma once

#include "privacy/noise/noise_source.h"

#include <cstdint>
#include <vector>

namespace sotto::privacy {

// {0 … bound-1}, unbiased; bound > 0.
uint64_t uniform_below(uint64_t bound, NoiseSource& source);

// True with exactly this probability; 0 ≤ probability ≤ 1.
bool bernoulli(double probability, NoiseSource& source);
bool bernoulli(uint64_t numerator, uint64_t denominator, NoiseSource& source);

// True with probability e^-γ, where trial() is true with probability γ independently at each call. Exact: the number
// of trials until one of Bernoulli(γ/1), Bernoulli(γ/2), … fails is odd with probability Σ (-γ)^k/k!.
template <typename Trial>
bool bernoulli_exp_minus(const Trial& trial, NoiseSource& source) {
  uint64_t k = 1;
  while (trial() && bernoulli(1, k, source)) ++k;
  return k % 2 == 1;
}

// True with probability e^-(numerator/denominator), exactly; denominator > 0.
bool bernoulli_exp_minus(uint64_t numerator, uint64_t denominator, NoiseSource& source);

// Poisson sampling: each of 0 … count-1 with this probability, independently; ascending.
std::vector<int64_t> poisson_sample(int64_t count, double probability, NoiseSource& source);

// `size` of 0 … count-1, ascending: every set of that size is as likely as any other.
std::vector<int64_t> fixed_sample(int64_t count, int64_t size, NoiseSource& source);

}  // namespace sotto::privacy

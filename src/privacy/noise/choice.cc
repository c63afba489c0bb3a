#include "privacy/noise/choice.h"

#include "base/error.h"
#include "privacy/noise/uniform.h"

#include <algorithm>
#include <numeric>

namespace sotto::privacy {

std::vector<int64_t> exponential_picks(std::span<const uint64_t> scores, uint64_t scale, int64_t count,
                                       NoiseSource& source) {
  SOTTO_INVARIANT(scale > 0 && count >= 0 && static_cast<size_t>(count) <= scores.size());
  std::vector<int64_t> left(scores.size());
  std::iota(left.begin(), left.end(), 0);
  const auto score = [&](int64_t index) { return scores[static_cast<size_t>(index)]; };
  std::vector<int64_t> picked;
  while (picked.size() < static_cast<size_t>(count)) {
    const uint64_t largest =
        score(*std::max_element(left.begin(), left.end(), [&](int64_t a, int64_t b) { return score(a) < score(b); }));
    size_t place = uniform_below(left.size(), source);
    while (!bernoulli_exp_minus(largest - score(left[place]), scale, source)) {
      place = uniform_below(left.size(), source);
    }
    picked.push_back(left[place]);
    left[place] = left.back();
    left.pop_back();
  }
  return picked;
}

}  // namespace sotto::privacy

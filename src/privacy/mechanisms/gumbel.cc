#include "privacy/mechanisms/gumbel.h"

#include "base/error.h"
#include "privacy/access.h"
#include "privacy/noise/choice.h"

#include <ATen/ATen.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <vector>

namespace sotto::privacy {
namespace {

constexpr double kLevels = 1 << 20;
// More than what rounding does to scale / sensitivity.
constexpr double kRounding = 1.0 + 0x1p-50;

}  // namespace

GumbelTopK::GumbelTopK(int64_t scores, double high, int64_t k, double pick_epsilon)
    : scores_(scores), high_(high), k_(k) {
  if (k < 1 || k > scores) fail_user("cannot choose the top {} of {} scores", k, scores);
  const bool possible = pick_epsilon >= 1e-12 && std::isfinite(pick_epsilon) && high > 0 && std::isfinite(high);
  if (!possible) fail_user("choosing the top {} needs a positive ε and score range", k);
  grid_scale_ = static_cast<uint64_t>(std::ceil(2 * kLevels / pick_epsilon));
}

double GumbelTopK::scale() const {
  return static_cast<double>(grid_scale_) * (high_ / kLevels);
}

double GumbelTopK::sensitivity() const {
  return 2 * high_ * kRounding;
}

Event GumbelTopK::event(const Neighbours& neighbours) const {
  return {
      .mechanism = kGumbelTopKMechanism,
      .noise_scale = scale(),
      .sensitivity = sensitivity(),
      .steps = k_,
      .neighbours = neighbours,
      .parameters = nlohmann::json{{"scores", scores_}, {"k", k_}, {"high", high_}, {"grid", high_ / kLevels}}.dump()};
}

Release GumbelTopK::randomise(Bounded&& scores, Receipt receipt, NoiseSource& source) const {
  SOTTO_INVARIANT(scores.norm() == Norm::kMax && scores.groups().front().sensitivity <= high_);
  SOTTO_INVARIANT(receipt.sensitivity() == sensitivity() && receipt.noise_scale() == scale());
  NamedTensors& values = Access::values(scores);
  SOTTO_INVARIANT(values.size() == 1 && values[0].value.numel() == scores_);
  const at::Tensor numbers = values[0].value.reshape({-1}).to(at::kCPU, at::kDouble).contiguous();
  std::vector<uint64_t> levels;
  for (const double score : std::span(numbers.data_ptr<double>(), static_cast<size_t>(scores_))) {
    // Whatever the score is, its level is between 0 and kLevels: that is all the proof needs.
    levels.push_back(static_cast<uint64_t>(std::clamp(std::round(score / high_ * kLevels), 0.0, kLevels)));
  }
  std::vector<int64_t> picked = exponential_picks(levels, grid_scale_, k_, source);
  std::sort(picked.begin(), picked.end());
  return Access::release({{"indices", at::tensor(picked, at::kLong)}}, std::move(receipt));
}

}  // namespace sotto::privacy

#include "privacy/mechanisms/laplace.h"

#include "base/error.h"
#include "privacy/access.h"
#include "privacy/mechanisms/floats.h"
#include "privacy/noise/laplace.h"

#include <ATen/ATen.h>

#include <nlohmann/json.hpp>

namespace sotto::privacy {
namespace {

constexpr double kRounding = 1.0 + 0x1p-10;
// The most that laplace_grid adds to a sensitivity, and a little more.
constexpr double kGridShare = 1.0 + 0x1p-10 * (1.0 + 0x1p-5);

}  // namespace

LaplaceMechanism::LaplaceMechanism(Group group, double scale)
    : group_(std::move(group)),
      grid_(laplace_grid(scale, group_.sensitivity * kRounding, static_cast<size_t>(group_.coordinates))),
      sensitivity_(
          charged_l1_sensitivity(grid_, group_.sensitivity * kRounding, static_cast<size_t>(group_.coordinates))) {}

Event LaplaceMechanism::event(const Neighbours& neighbours) const {
  return {.mechanism = kLaplaceMechanism,
          .noise_scale = scale(),
          .sensitivity = sensitivity_,
          .neighbours = neighbours,
          .parameters = nlohmann::json{{"coordinates", group_.coordinates}, {"grid", grid_.step}}.dump()};
}

Release LaplaceMechanism::randomise(Bounded&& bounded, Receipt receipt, NoiseSource& source) const {
  SOTTO_INVARIANT(bounded.norm() == Norm::kL1 && bounded.groups() == std::vector<Group>{group_});
  SOTTO_INVARIANT(receipt.sensitivity() == sensitivity_ && receipt.noise_scale() == scale());
  NamedTensors& values = Access::values(bounded);
  for (auto& [name, value] : values) {
    change_doubles(value, [&](std::span<double> numbers) { add_laplace(numbers, grid_, source); });
    value = value.to(at::kFloat);
  }
  return Access::release(std::move(values), std::move(receipt));
}

LaplaceTopK::LaplaceTopK(int64_t scores, double high, int64_t k, double epsilon) : scores_(scores), high_(high), k_(k) {
  if (k < 1 || k > scores) fail_user("cannot choose the top {} of {} scores", k, scores);
  if (!(epsilon > 0) || !(high > 0)) fail_user("choosing the top {} needs a positive ε and score range", k);
  // Scores are clamped one by one, so that nothing was summed; the grid moves each by itself.
  const double wanted = 2.0 * static_cast<double>(k) * high / epsilon * kGridShare;
  grid_ = laplace_grid(wanted, high, 1);
  sensitivity_ = 2.0 * static_cast<double>(k) * charged_l1_sensitivity(grid_, high, 1);
}

Event LaplaceTopK::event(const Neighbours& neighbours) const {
  return {.mechanism = kTopKMechanism,
          .noise_scale = scale(),
          .sensitivity = sensitivity_,
          .neighbours = neighbours,
          .parameters = nlohmann::json{{"scores", scores_}, {"k", k_}, {"high", high_}, {"grid", grid_.step}}.dump()};
}

Release LaplaceTopK::randomise(Bounded&& scores, Receipt receipt, NoiseSource& source) const {
  SOTTO_INVARIANT(scores.norm() == Norm::kMax && scores.groups().front().sensitivity <= high_);
  SOTTO_INVARIANT(receipt.sensitivity() == sensitivity_ && receipt.noise_scale() == scale());
  NamedTensors& values = Access::values(scores);
  SOTTO_INVARIANT(values.size() == 1 && values[0].value.numel() == scores_);
  at::Tensor noisy = values[0].value.reshape({-1}).to(at::kDouble);
  change_doubles(noisy, [&](std::span<double> numbers) { add_laplace(numbers, grid_, source); });
  const at::Tensor chosen = std::get<1>(noisy.topk(k_));
  return Access::release({{"indices", std::get<0>(chosen.sort())}}, std::move(receipt));
}

}  // namespace sotto::privacy

#include "privacy/mechanisms/gaussian.h"

#include "base/error.h"
#include "privacy/access.h"
#include "privacy/mechanisms/floats.h"
#include "privacy/noise/gaussian.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace sotto::privacy {
namespace {

// Sums in floats of n ≤ 64 vectors of norm ≤ Δ are off by less than n²·2⁻²⁴·Δ; one change touches two such sums, in two
// worlds: 4·64²·2⁻²⁴ (docs/proofs/noisy-descent.md). Everything else is summed in doubles.
constexpr double kRounding = 1.0 + 0x1p-10;
// What a grid of half of gaussian_grid's step adds, twice, and a little for the rounding of these very products. Once is
// enough where nothing is sampled; a sampled record's own share of a sum must be within half of what is charged for two.
constexpr double kGridShare = 1.0 + 0x1p-10 * (1.0 + 0x1p-5);
constexpr double kLoudest = 1e9;     // noise over sensitivity
constexpr size_t kTwiceTheGrid = 4;  // the grid's share grows with the root of the number of values

void check_multiplier(double noise_multiplier) {
  if (!(noise_multiplier > 0) || !std::isfinite(noise_multiplier)) {
    fail_user("the noise multiplier is {}; it must be a positive number", noise_multiplier);
  }
}

bool is_noised(const Group& group) {
  return group.coordinates > 0 && group.sensitivity > 0;
}

std::vector<double> least_energy_weights(const std::vector<Group>& groups) {
  std::vector<double> weights;
  weights.reserve(groups.size());
  for (const Group& group : groups) {
    weights.push_back(group.sensitivity * std::sqrt(static_cast<double>(group.coordinates)));
  }
  return weights;
}

}  // namespace

GroupwiseGaussian GroupwiseGaussian::calibrated(double noise_multiplier, std::vector<Group> groups,
                                                std::vector<double> weights) {
  check_multiplier(noise_multiplier);
  if (weights.empty()) weights = least_energy_weights(groups);
  SOTTO_INVARIANT(weights.size() == groups.size());
  double total = 0;
  for (size_t g = 0; g < groups.size(); ++g) {
    if (!is_noised(groups[g])) continue;
    if (!(weights[g] > 0) || !std::isfinite(weights[g])) {
      fail_user("the noise weight of group '{}' is {}; it must be a positive number", groups[g].name, weights[g]);
    }
    total += weights[g];
  }
  std::vector<double> stddevs(groups.size(), 0.0);
  for (size_t g = 0; g < groups.size(); ++g) {
    if (!is_noised(groups[g])) continue;
    const double multiplier = noise_multiplier / std::sqrt(weights[g] / total);
    stddevs[g] = multiplier * groups[g].sensitivity * kRounding * kGridShare;
  }
  GroupwiseGaussian mechanism(std::move(groups), stddevs);
  mechanism.asked_ = noise_multiplier;
  return mechanism;
}

// Grid and rounding move group g by up to η·Δ_g more, all groups at once: (x_g + η)_g has norm ≤ 1 + η√groups.
GroupwiseGaussian GroupwiseGaussian::joint(double noise_multiplier, std::vector<Group> groups) {
  check_multiplier(noise_multiplier);
  const double extra = (kRounding * kGridShare - 1) * std::sqrt(static_cast<double>(groups.size()));
  std::vector<double> stddevs;
  stddevs.reserve(groups.size());
  for (const Group& group : groups) stddevs.push_back(noise_multiplier * group.sensitivity * (1 + extra));
  GroupwiseGaussian mechanism(std::move(groups), stddevs, Norm::kJoint);
  mechanism.asked_ = noise_multiplier;
  return mechanism;
}

GroupwiseGaussian GroupwiseGaussian::with_stddevs(std::vector<Group> groups, std::vector<double> stddevs) {
  SOTTO_INVARIANT(stddevs.size() == groups.size());
  return GroupwiseGaussian(std::move(groups), stddevs);
}

GroupwiseGaussian::GroupwiseGaussian(std::vector<Group> groups, const std::vector<double>& stddevs, Norm norm)
    : groups_(std::move(groups)), norm_(norm) {
  bool any = false;
  for (size_t g = 0; g < groups_.size(); ++g) {
    const Group& group = groups_[g];
    GroupNoise noise;
    any = any || is_noised(group);
    if (is_noised(group) && stddevs[g] > 0) {
      const auto count = static_cast<size_t>(group.coordinates);
      const double sensitivity = group.sensitivity * kRounding;
      // Finer, so that twice the grid costs no more; noise that was given may be too large for that.
      const bool is_loud = stddevs[g] / sensitivity > kLoudest;
      noise.grid = gaussian_grid(stddevs[g], is_loud ? sensitivity : sensitivity / 2, count);
      noise.stddev = noise.grid.noise_scale();
      noise.sensitivity = charged_l2_sensitivity(noise.grid, sensitivity, kTwiceTheGrid * count);
    }
    if (is_noised(group) && noise.stddev == 0) {
      noise.sensitivity = group.sensitivity;
      bare_ = group.name;
    }
    noises_.push_back(noise);
  }
  if (!any) fail_user("there is nothing to add noise to: every group is empty or has no sensitivity");
}

double GroupwiseGaussian::noise_multiplier() const {
  if (!bare_.empty()) return 0;
  if (norm_ == Norm::kJoint) return joint_multiplier();
  double inverse_square = 0;
  for (const GroupNoise& noise : noises_) {
    if (noise.stddev > 0) inverse_square += std::pow(noise.sensitivity / noise.stddev, 2);
  }
  return std::min(asked_, 1 / std::sqrt(inverse_square));
}

double GroupwiseGaussian::joint_multiplier() const {
  double worst = 0, share = 0;
  for (size_t g = 0; g < groups_.size(); ++g) {
    if (noises_[g].stddev == 0) continue;
    worst = std::max(worst, groups_[g].sensitivity / noises_[g].stddev);
    share = std::max(share, noises_[g].sensitivity / groups_[g].sensitivity - 1);
  }
  return std::min(asked_, 1 / (worst * (1 + share * std::sqrt(static_cast<double>(groups_.size())))));
}

int64_t GroupwiseGaussian::coordinates() const {
  return std::accumulate(groups_.begin(), groups_.end(), int64_t{0},
                         [](int64_t sum, const Group& group) { return sum + group.coordinates; });
}

double GroupwiseGaussian::noise_norm(size_t left_out) const {
  double square = 0;
  for (size_t g = 0; g + left_out < groups_.size(); ++g) {
    square += static_cast<double>(groups_[g].coordinates) * noises_[g].stddev * noises_[g].stddev;
  }
  return std::sqrt(square);
}

double GroupwiseGaussian::reference_sensitivity() const {
  double square = 0;
  for (const GroupNoise& noise : noises_) square += noise.sensitivity * noise.sensitivity;
  return std::sqrt(square);
}

double GroupwiseGaussian::slack() const {
  double total = 0;
  for (size_t g = 0; g < groups_.size(); ++g) {
    if (noises_[g].stddev == 0) continue;
    total += describe_gaussian(noises_[g].grid, static_cast<size_t>(groups_[g].coordinates)).total_variation;
  }
  return total;
}

Event GroupwiseGaussian::event(const Neighbours& neighbours, int64_t steps, int64_t draws) const {
  nlohmann::json groups = nlohmann::json::array();
  for (size_t g = 0; g < groups_.size(); ++g) {
    groups.push_back({{"group", groups_[g].name},
                      {"coordinates", groups_[g].coordinates},
                      {"sensitivity", noises_[g].sensitivity},
                      {"stddev", noises_[g].stddev},
                      {"grid", noises_[g].grid.step}});
  }
  const double sensitivity = reference_sensitivity();
  return {.mechanism = kGaussianMechanism,
          .why_unproven = bare_.empty() ? "" : fmt::format("'{}' is released without noise", bare_),
          .noise_scale = noise_multiplier() * sensitivity,
          .sensitivity = sensitivity,
          .steps = steps,
          .slack = slack() * static_cast<double>(draws),
          .neighbours = neighbours,
          .parameters = nlohmann::json{{"groups", groups}}.dump()};
}

void GroupwiseGaussian::perturb(Bounded& bounded, NoiseSource& source) const {
  SOTTO_INVARIANT(bounded.groups() == groups_ && bounded.norm() == norm_);
  NamedTensors& values = Access::values(bounded);
  size_t next = 0;
  for (size_t g = 0; g < groups_.size(); ++g) {
    for (int64_t i = 0; i < groups_[g].tensors; ++i, ++next) {
      if (noises_[g].stddev == 0) continue;
      at::Tensor& value = values[next].value;
      const auto add = [&](auto numbers) { add_gaussian(numbers, noises_[g].grid, source); };
      if (value.scalar_type() == at::kDouble) {
        change_doubles(value, [&](std::span<double> numbers) { add(numbers); });
      } else {
        change_floats(value, [&](std::span<float> numbers) { add(numbers); });
      }
    }
  }
}

bool GroupwiseGaussian::is_paid_by(const Receipt& receipt) const {
  const double sensitivity = reference_sensitivity();
  return receipt.sensitivity() == sensitivity && receipt.noise_scale() == noise_multiplier() * sensitivity;
}

Release GroupwiseGaussian::randomise(Bounded&& bounded, Receipt receipt, NoiseSource& source) const {
  SOTTO_INVARIANT(is_paid_by(receipt));
  perturb(bounded, source);
  NamedTensors& values = Access::values(bounded);
  for (NamedTensor& value : values) value.value = value.value.to(at::kFloat);
  return Access::release(std::move(values), std::move(receipt));
}

}  // namespace sotto::privacy

#include "privacy/accounting/composition_theorems.h"

#include "base/error.h"
#include "privacy/accounting/exact.h"

#include <algorithm>
#include <cmath>

namespace sotto::privacy {
namespace {

constexpr double kUp = 1 + 4e-16;

bool has_curve(const Step& step) {
  return step.kind == Step::Kind::kGaussian;
}

// A μ such that the step's Rényi divergences are at most those of a Gaussian of multiplier 1/μ.
double gaussian_mu_at_least(const Step& step) {
  using Kind = Step::Kind;
  if (step.kind == Kind::kGaussian || step.kind == Kind::kDiscreteGaussian) return 1 / step.noise_multiplier;
  return step.kind == Kind::kBoundedRange ? step.epsilon / 2 : largest_loss(step);
}

double concentrated_divergence(std::span<const Steps> steps) {
  double sum = 0;
  for (const Steps& entry : steps) {
    if (entry.step.allocated()) fail_user("zcdp does not cover random allocation: use pld");
    if (entry.step.sampled()) fail_user("zcdp does not cover sampled steps: use pld or rdp");
    if (entry.step.kind == Step::Kind::kApproximate) fail_user("zcdp does not cover approximate steps: use pld");
    const double epsilon = gaussian_mu_at_least(entry.step);
    sum += static_cast<double>(entry.count) * epsilon * epsilon / 2;
  }
  return sum;
}

double classical_multiplier(std::span<const Steps> steps) {
  const std::vector<Steps> all = merged(steps);
  if (all.size() != 1 || all.front().count != 1 || !all_unsampled_gaussians(all)) {
    fail_user("the classical rule covers a single Gaussian step that was not sampled: use exact or pld");
  }
  return all.front().step.noise_multiplier;
}

// What approximate steps spend of δ for certain.
double delta_of_steps(std::span<const Steps> steps) {
  double sum = 0;
  for (const Steps& entry : steps) {
    if (entry.step.kind != Step::Kind::kApproximate) continue;
    const bool shared = is_one_sided(entry.step.adjacency);
    // Adding a sampled record may reveal it at finite loss -ln(1-q), which the pair (ε, δ) does not express.
    sum += static_cast<double>(entry.count) * entry.step.delta * (shared ? 1 : entry.step.sampling_rate);
  }
  return sum;
}

int64_t curves(std::span<const Steps> steps) {
  int64_t count = 0;
  for (const Steps& entry : steps) count += has_curve(entry.step) ? entry.count : 0;
  return count;
}

double step_epsilon(const Step& step, double delta_share) {
  if (step.allocated()) fail_user("composition theorems do not cover random allocation: use pld");
  if (step.kind == Step::Kind::kDiscreteGaussian) {
    fail_user("composition theorems do not cover discrete gaussian noise: use pld");
  }
  if (!has_curve(step)) return largest_loss(step);
  const Steps one{step, 1};
  return exact_epsilon({&one, 1}, delta_share);
}

double rest_of_delta(std::span<const Steps> steps, double delta) {
  const double rest = delta - delta_of_steps(steps);
  if (!(rest > 0)) fail_user("the steps' own delta adds up to {}: no epsilon at delta {}", delta - rest, delta);
  return rest;
}

}  // namespace

double zcdp_epsilon(std::span<const Steps> steps, double delta) {
  const double rho = concentrated_divergence(steps);
  return (rho + 2 * std::sqrt(rho * -std::log(delta))) * kUp;
}

double zcdp_log_delta(std::span<const Steps> steps, double epsilon) {
  const double rho = concentrated_divergence(steps);
  if (rho == 0) return -HUGE_VAL;
  if (epsilon <= rho) return 0;
  return -(epsilon - rho) * (epsilon - rho) / (4 * rho) / kUp;
}

double classical_epsilon(std::span<const Steps> steps, double delta) {
  const double epsilon = std::sqrt(2 * std::log(1.25 / delta)) / classical_multiplier(steps) * kUp;
  if (epsilon > 1)
    fail_user("the classical rule is proved for epsilon up to 1 only; here it would claim {:.6g}", epsilon);
  return epsilon;
}

double classical_log_delta(std::span<const Steps> steps, double epsilon) {
  if (epsilon > 1 || epsilon <= 0) fail_user("the classical rule is proved for epsilon above 0 and up to 1 only");
  const double reach = classical_multiplier(steps) * epsilon;
  return std::min(0.0, std::log(1.25) - reach * reach / 2 / kUp);
}

double basic_epsilon(std::span<const Steps> steps, double delta) {
  const int64_t shares = curves(steps);
  const double rest = delta_of_steps(steps) == 0 ? delta : rest_of_delta(steps, delta);
  double sum = 0;
  for (const Steps& entry : steps) {
    if (entry.count == 0) continue;
    sum += static_cast<double>(entry.count) *
           step_epsilon(entry.step, rest / static_cast<double>(std::max<int64_t>(shares, 1)));
  }
  return sum * kUp;
}

double advanced_epsilon(std::span<const Steps> steps, double delta) {
  const int64_t shares = curves(steps);
  const double rest = rest_of_delta(steps, delta);
  const double slack = shares > 0 ? rest / 2 : rest;
  double drift = 0;
  double squares = 0;
  for (const Steps& entry : steps) {
    if (entry.count == 0) continue;
    const auto count = static_cast<double>(entry.count);
    const double epsilon = step_epsilon(entry.step, (rest - slack) / static_cast<double>(std::max<int64_t>(shares, 1)));
    drift += count * epsilon * std::tanh(epsilon / 2);
    squares += count * epsilon * epsilon;
  }
  return std::min(basic_epsilon(steps, delta), (drift + std::sqrt(2 * -std::log(slack) * squares)) * (1 + 1e-14));
}

}  // namespace sotto::privacy

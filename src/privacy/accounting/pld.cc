#include "privacy/accounting/pld.h"

#include "privacy/accounting/allocation.h"
#include "privacy/accounting/exact.h"
#include "privacy/accounting/saddle.h"
#include "privacy/accounting/tilted_composition.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

namespace sotto::privacy {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kLeastLogDelta = -644;  // ln 1e-280
constexpr double kCoarse = 6e-4;         // tolerances, relative to ε
constexpr double kFine = 3e-5;
constexpr double kMostPoints = 1 << 22;
constexpr int kMostPasses = 6;
// ln of δ after tilting that leaves digits enough above the rounding of the transforms.
constexpr double kMostDigitsLost = -8;
// ln of how much of δ may be spent on cutting off the tails of single steps.
constexpr double kLogTailShare = -10;
// ln of how small, relative to δ, what wraps round should be.
constexpr double kNegligible = -20;

// Tilts λ + s at which Chernoff bounds are tried, relative to the width of the tilted distribution.
template <typename F>
void for_each_shift(double deviation, const F& take) {
  for (int i = 0; i < 23; ++i) take(0.02 * std::pow(1.4, i) / deviation);
}

// The window for δ near e^log_delta at ε and a given tilt: far enough up that the tilted mass beyond is negligible, and
// far enough down (or, since a wrap round costs e^{-λ·length}, long enough) that the mass below is.
Window window_at(const ComposedLoss& loss, double epsilon, double log_delta, double tilt) {
  const Cumulant at = loss.cumulant(tilt);
  const double deviation = std::sqrt(at.variance) + 1e-300;
  const double log_weight = log_delta - (at.value - tilt * epsilon);  // ln of δ after tilting
  double up = loss.largest() - epsilon + 1e-9 + 1e-6 * std::abs(epsilon);
  double down = kInfinity;
  for_each_shift(deviation, [&](double s) {
    const double above = loss.cumulant(tilt + s).value - at.value;
    up = std::min(up, (above - kNegligible - log_weight) / s - epsilon);
    if (s > tilt + 1) return;
    const double below = loss.cumulant(tilt - s).value - at.value;
    down = std::min(down, (below - kNegligible - log_weight) / s + epsilon);
  });
  Window window;
  window.tilt = tilt;
  const double slack = std::min(4 * deviation + 0.2 * std::abs(epsilon) + 1e-12, 100 / std::max(tilt, 1e-100));
  window.bottom = epsilon - slack;
  const double by_decay = tilt > 0 ? (-kNegligible - log_delta) / tilt : kInfinity;
  window.height = std::max(up, slack) + slack;
  window.length = window.height + std::min(by_decay, std::max(0.0, down - slack));
  return window;
}

// A tilt below the saddle point costs digits, of which there are plenty, and may save much of the window where rare
// large losses dominate the tilted distribution.
Window choose_window(const ComposedLoss& loss, double epsilon, double log_delta) {
  const double saddle = loss.saddle_point(std::min(epsilon, loss.largest() * (1 - 1e-6)));
  Window best = window_at(loss, epsilon, log_delta, saddle);
  for (int i = 1; i <= 30; ++i) {
    const double tilt = saddle * std::pow(0.8, i);
    if (log_delta - (loss.cumulant(tilt).value - tilt * epsilon) < kMostDigitsLost) break;
    const Window window = window_at(loss, epsilon, log_delta, tilt);
    if (window.length < best.length) best = window;
  }
  const double top = best.bottom + best.height;
  const Cumulant at = loss.cumulant(best.tilt);
  best.chernoff_tilt = best.tilt;
  double least = at.value - best.tilt * top;
  for_each_shift(std::sqrt(at.variance) + 1e-300, [&](double s) {
    const double value = loss.cumulant(best.tilt + s).value - (best.tilt + s) * top;
    if (value >= least) return;
    least = value;
    best.chernoff_tilt = best.tilt + s;
  });
  return best;
}

class Engine {
 public:
  explicit Engine(std::vector<Steps> steps) : steps_(std::move(steps)) {
    const bool symmetric =
        std::all_of(steps_.begin(), steps_.end(), [](const Steps& s) { return is_symmetric(s.step); });
    directions_ = {Direction::kRemove};
    if (!symmetric) directions_.push_back(Direction::kAdd);
  }

  double epsilon(double delta) const {
    double result = 0;
    for (const Direction direction : directions_) result = std::max(result, epsilon(direction, delta, result));
    return result;
  }

  double log_delta(double epsilon) const {
    double result = -kInfinity;
    for (const Direction direction : directions_) result = std::max(result, log_delta(direction, epsilon));
    return result;
  }

  double log_delta(Direction direction, double epsilon) const {
    double guess = kLeastLogDelta;
    {
      const ComposedLoss whole(steps_, direction);
      if (epsilon >= whole.largest() * (1 + 1e-12)) {
        return whole.revealed() > 0 ? std::log(whole.revealed()) + 1e-14 : -kInfinity;
      }
      guess = std::max(guess, rough_log_delta(whole, epsilon, whole.saddle_point(epsilon)));
    }
    double best = 0;
    guess = std::min(guess, -1e-3);
    double slope = 0;
    for (int pass = 0; pass < 4; ++pass) {
      const ComposedLoss loss(steps_, direction, tail_mass(guess));
      if (pass == 0) slope = loss.saddle_point(epsilon);
      const Window window = choose_window(loss, epsilon, guess);
      const double wanted = spacing_for(1e-4 / std::max(slope, 1e-3), slope);
      const double spacing = limited_spacing(wanted, window, std::exp(guess), direction);
      const TiltedComposition composition(grids(spacing, tail_mass(guess), direction), window);
      const double found = composition.log_delta(epsilon);
      best = std::min(best, found);
      const double next_slope = composition.slope(epsilon);
      if (std::abs(found - guess) < 1 && next_slope < 2 * slope) break;
      guess = std::clamp(found, kLeastLogDelta, -1e-3);
      slope = next_slope;
    }
    return best;
  }

 private:
  // Bounds below `enough` need not be refined.
  double epsilon(Direction direction, double delta, double enough) const {
    const double revealed = ComposedLoss(steps_, direction).revealed();
    if (revealed * (1 + 1e-14) >= delta) return kInfinity;
    const double target = std::log(delta);
    const double finite_target = std::log(delta - revealed);
    const ComposedLoss loss(steps_, direction, tail_mass(finite_target));
    double best = loss.largest() * (1 + 1e-12);
    if (best <= enough) return best;
    double guess = rough_epsilon(loss, finite_target);
    double slope = loss.saddle_point(guess);
    double tolerance = kCoarse;
    for (int pass = 0; pass < kMostPasses; ++pass) {
      const Window window = choose_window(loss, guess, finite_target);
      const double least = (tolerance > kFine ? 0.05 : 1e-3) / slope;  // where ε is a mere fraction of 1/slope
      const double wanted = spacing_for(tolerance * std::max(guess, least), slope);
      const double spacing = limited_spacing(wanted, window, delta, direction);
      const TiltedComposition composition(grids(spacing, tail_mass(finite_target), direction), window);
      const double found = composition.epsilon(target);
      const double bottom = composition.bottom();
      const bool below_window = found <= bottom + 2 * spacing && bottom > 0;
      best = std::min(best, std::max(found, 0.0));
      if (best <= enough) break;
      const bool near = !below_window && std::abs(found - guess) <= 0.05 * std::max(guess, least);
      if (near && (tolerance <= kFine || spacing > 1.3 * wanted)) break;
      if (near || pass > 1) tolerance = kFine;
      if (below_window) {
        guess = std::max(0.0, bottom - (guess - bottom));
        slope = loss.saddle_point(guess);
      } else if (std::isfinite(found)) {
        guess = std::max(found, 0.0);
        slope = composition.slope(guess);
      } else {
        guess *= 2;
      }
    }
    return best;
  }

  // Grid spacing at which ε is off by about `error`.
  double spacing_for(double error, double tilt) const {
    double spreads = 0;
    for (const Steps& entry : steps_) {
      spreads += static_cast<double>(entry.count) * (entry.step.allocated() ? allocated_spreads(entry.step) : 1);
    }
    return std::sqrt(8 * error / (spreads * (tilt + 1)));
  }

  // Not finer than the limit of points allows, and such that the largest atom lies on the grid, rare ones apart; or, where
  // nothing has a largest one, the lattice of a discrete Gaussian that is wider than the grid.
  double limited_spacing(double wanted, const Window& window, double delta, Direction direction) const {
    double least = window.length / kMostPoints;
    double atom = 0;
    double lattice = 0;  // of which all atoms of discrete Gaussians are multiples
    for (const Steps& entry : steps_) {
      if (entry.step.kind == Step::Kind::kDiscreteGaussian) {
        lattice = std::max(lattice, 0.5 / (entry.step.noise_multiplier * entry.step.noise_multiplier));
      }
      least = std::max(least, grid_points(entry.step, 1, tail_mass(std::log(delta))) / kMostPoints);
      Step without_rare = entry.step;
      without_rare.delta = 0;
      const double largest = largest_loss(without_rare, direction);
      if (std::isfinite(largest)) atom = std::max(atom, largest);
    }
    double spacing = std::max(least, std::min(wanted, window.length / 1024));
    // Few different ones, since grids of random allocation are remembered: the other direction asks for the same.
    if (has_allocated()) spacing = std::exp2(std::floor(3 * std::log2(spacing)) / 3);
    if (atom == 0 && lattice >= spacing) atom = lattice;
    return atom > 0 && atom / spacing < 1e9 ? atom / std::ceil(atom / spacing) : spacing;
  }

  double tail_mass(double log_delta) const {
    const double log_tail =
        std::max(log_delta, kLeastLogDelta) + kLogTailShare - std::log(static_cast<double>(total_count(steps_)));
    return std::exp(has_allocated() ? std::floor(log_tail) : log_tail);
  }

  bool has_allocated() const {
    return std::any_of(steps_.begin(), steps_.end(), [](const Steps& entry) { return entry.step.allocated(); });
  }

  std::vector<CountedGrid> grids(double spacing, double tail, Direction direction) const {
    std::vector<CountedGrid> result;
    for (const Steps& entry : steps_) {
      LossGrid grid = discretise(entry.step, spacing, tail);
      if (direction == Direction::kAdd && !is_symmetric(entry.step)) grid = grid.swapped();
      result.push_back({std::move(grid), entry.count});
    }
    return result;
  }

  std::vector<Steps> steps_;
  std::vector<Direction> directions_;
};

// Noise that hides nothing: a grid would need as many points as the losses are large. Below it chance in who takes part
// is not counted, which is an upper bound: a mixture of two pairs is no easier to tell apart than the worse of them.
constexpr double kLeastOnGrid = 0.01;

bool is_plain_gaussian(const Step& step) {
  if (step.kind == Step::Kind::kCohortGaussian) return !step.sampled() || step.noise_multiplier < 2 * kLeastOnGrid;
  if (step.kind != Step::Kind::kGaussian) return false;
  if (step.noise_multiplier < kLeastOnGrid) return true;
  return !step.sampled() && !(step.allocated() && allocation_matters(step));
}

// Steps of large losses as randomised response of the same largest loss, which covers them.
Steps simplified(Steps entry) {
  const bool large = largest_loss(entry.step) > 1 / kLeastOnGrid;
  const bool covered = entry.step.kind == Step::Kind::kLaplace || entry.step.kind == Step::Kind::kBoundedRange;
  if (large && covered) entry.step = Step::pure(largest_loss(entry.step));
  return entry;
}

// Gaussians that were not sampled are one Gaussian, exactly.
std::vector<Steps> compacted(std::span<const Steps> steps) {
  std::vector<Steps> result;
  long double mu_squared = 0;
  for (const Steps& entry : merged(steps)) {
    if (is_plain_gaussian(entry.step)) {
      mu_squared += static_cast<long double>(entry.count) /
                    (static_cast<long double>(entry.step.noise_multiplier) * entry.step.noise_multiplier);
    } else {
      result.push_back(simplified(entry));
    }
  }
  if (mu_squared > 0) {
    result.push_back({Step::gaussian(static_cast<double>((1 - 4e-16L) / std::sqrt(mu_squared))), 1});
  }
  return result;
}

// Takes the last of `compacted` steps out if it is a Gaussian whose loss is too large for a grid. What it costs is known
// in closed form and added to what the others cost.
std::optional<Steps> take_loud_gaussian(std::vector<Steps>& steps) {
  if (!is_plain_gaussian(steps.back().step) || steps.back().step.noise_multiplier >= kLeastOnGrid) return std::nullopt;
  const Steps loud = steps.back();
  steps.pop_back();
  return loud;
}

// The same as plain Gaussians, if there are no other steps than these, allocated ones and fixed cohorts; otherwise
// nothing. An average is less than its terms in the convex order (allocation.h), and a mixture of pairs than the worst of
// them, so a bound for these is one for those.
std::vector<Steps> unamplified(std::span<const Steps> steps) {
  std::vector<Steps> result;
  bool any = false;
  for (Steps entry : steps) {
    any = any || entry.step.allocated() || entry.step.kind == Step::Kind::kCohortGaussian;
    entry.step = entry.step.in_public();
    result.push_back(entry);
  }
  return any && all_unsampled_gaussians(result) ? merged(result) : std::vector<Steps>{};
}

// Where one record of an allocation becomes another.
bool replaces_allocated(std::span<const Steps> steps) {
  return std::any_of(steps.begin(), steps.end(),
                     [](const Steps& entry) { return entry.step.allocated() && !is_one_sided(entry.step.adjacency); });
}

// Either record against none: an allocated one moves half as far, and other Gaussians are taken to move as far as ever.
// Nothing if there are other steps.
std::optional<std::vector<Steps>> against_none(std::span<const Steps> steps) {
  std::vector<Steps> result;
  for (Steps entry : steps) {
    if (entry.step.kind != Step::Kind::kGaussian || entry.step.sampled()) return std::nullopt;
    if (entry.step.allocated()) {
      entry.step = Step::allocated(2 * entry.step.noise_multiplier, entry.step.batches, Adjacency::kZeroOut);
    }
    result.push_back(entry);
  }
  return result;
}

std::vector<Steps> in_public(std::span<const Steps> steps) {
  std::vector<Steps> result(steps.begin(), steps.end());
  for (Steps& entry : result) entry.step = entry.step.in_public();
  return result;
}

// From one record to none and on to the other: (e, d) twice is (2e, (1 + e^e)d). Proof: docs/proofs/random-allocation.md
double epsilon_by_way_of_none(std::span<const Steps> either, double delta) {
  constexpr double kPrecision = 2e-5;
  double best = kInfinity;
  double assumed = guess_epsilon(either, delta / 3);  // an upper bound of e, once `half` is not above it
  for (int i = 0; i < 10; ++i) {
    const double half = pld_epsilon(either, delta / (1 + std::exp(assumed)));
    if (half <= assumed) {
      best = std::min(best, 2 * half);
      if (assumed - half <= 2 * kPrecision * half) break;
      assumed = half * (1 + kPrecision);
    } else {
      assumed = half + (half - assumed) / 2 + kPrecision * half;
    }
  }
  return best;
}

double log_delta_by_way_of_none(std::span<const Steps> either, double epsilon) {
  return std::min(0.0, pld_log_delta(either, epsilon / 2) + std::log1p(std::exp(epsilon / 2)) * (1 + 1e-15) + 1e-15);
}

}  // namespace

double pld_epsilon(std::span<const Steps> steps, double delta) {
  if (replaces_allocated(steps)) {
    const double known = pld_epsilon(in_public(steps), delta);
    const auto either = against_none(steps);
    return either ? std::min(known, epsilon_by_way_of_none(*either, delta)) : known;
  }
  std::vector<Steps> all = compacted(steps);
  if (all.empty()) return 0;
  if (const auto loud = take_loud_gaussian(all)) {
    return all.empty() ? exact_epsilon({&*loud, 1}, delta)
                       : exact_epsilon({&*loud, 1}, delta / 2) + pld_epsilon(all, delta / 2);
  }
  const double found = Engine(all).epsilon(delta);
  const std::vector<Steps> plain = unamplified(steps);
  return plain.empty() ? found : std::min(found, exact_epsilon(plain, delta));
}

double guess_epsilon(std::span<const Steps> steps, double delta) {
  if (replaces_allocated(steps)) {
    const double known = guess_epsilon(in_public(steps), delta);
    const auto either = against_none(steps);
    return either ? std::min(known, 2 * guess_epsilon(*either, delta / 4)) : known;
  }
  std::vector<Steps> all = compacted(steps);
  if (all.empty()) return 0;
  if (const auto loud = take_loud_gaussian(all)) {
    return exact_epsilon({&*loud, 1}, delta) + (all.empty() ? 0 : guess_epsilon(all, delta));
  }
  const double tail = delta * std::exp(kLogTailShare) / static_cast<double>(total_count(all));
  return rough_epsilon(ComposedLoss(all, Direction::kRemove, tail), std::log(delta));
}

double pld_log_delta(std::span<const Steps> steps, Direction direction, double epsilon) {
  if (replaces_allocated(steps)) return pld_log_delta(steps, epsilon);
  const std::vector<Steps> all = compacted(steps);
  return all.empty() ? -kInfinity : Engine(all).log_delta(direction, epsilon);
}

double pld_log_delta(std::span<const Steps> steps, double epsilon) {
  if (replaces_allocated(steps)) {
    const double known = pld_log_delta(in_public(steps), epsilon);
    const auto either = against_none(steps);
    return either ? std::min(known, log_delta_by_way_of_none(*either, epsilon)) : known;
  }
  std::vector<Steps> all = compacted(steps);
  if (all.empty()) return -kInfinity;
  if (const auto loud = take_loud_gaussian(all)) {
    if (all.empty()) return exact_log_delta({&*loud, 1}, epsilon);
    return std::min(
        0.0, std::log(std::exp(exact_log_delta({&*loud, 1}, epsilon / 2)) + std::exp(pld_log_delta(all, epsilon / 2))));
  }
  const double found = Engine(all).log_delta(epsilon);
  const std::vector<Steps> plain = unamplified(steps);
  return plain.empty() ? found : std::min(found, exact_log_delta(plain, epsilon));
}

}  // namespace sotto::privacy

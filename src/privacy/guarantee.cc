#include "privacy/guarantee.h"

#include "privacy/accounting/accountant.h"
#include "privacy/accounting/distance.h"
#include "privacy/accounting/normal.h"
#include "privacy/accounting/proven.h"
#include "privacy/noise/gaussian_block.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <tuple>

namespace sotto::privacy {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Noise of finite precision makes a total variation far below any δ: not worth a second computation.
constexpr double kNegligibleSlack = 1e-25;

constexpr const char* kTooLittleNoise =
    "so little noise that, drawn with finite precision, it promises nothing at this δ";

// Releases with the same multiplier and different bounds must look alike although noise / sensitivity was rounded:
// rounded down to 40 bits, it costs ε a relative 1e-12.
double rounded_multiplier(double noise, double sensitivity) {
  int exponent = 0;
  const double mantissa = std::frexp(noise / sensitivity, &exponent);
  return std::ldexp(std::floor(std::ldexp(mantissa, 40)), exponent - 40);
}

auto key(const Step& step) {
  return std::tuple(step.kind, step.noise_multiplier, step.epsilon, step.delta, step.sampling_rate, step.adjacency,
                    step.batches);
}

auto key(const Steps& steps) {
  return std::tuple_cat(key(steps.step), std::tuple(steps.count));
}

// How likely it is that one of `numbers` noises lies where the other world's never does: that world's is cut, and no more
// than (1/(4z))² of them move by more than four standard deviations. Rounded up.
double out_of_reach(std::span<const Steps> pile, double numbers) {
  constexpr double kFar = 4;
  const auto beyond = [](double shift) { return 2.0 * static_cast<double>(normal_tail(kGaussianCut - shift)); };
  double sum = numbers * beyond(kFar);
  for (const Steps& steps : pile) {
    const double shift = 1 / steps.step.noise_multiplier;
    if (shift > kFar) sum += static_cast<double>(steps.count) * std::pow(shift / kFar, 2) * beyond(shift);
  }
  return sum * (1 + 1e-6);
}

// How many integers a discrete Gaussian's change moves by 1 each, if it can do nothing else: integer vectors with squares
// that add up to 3 at most have entries of 0 and ±1. Otherwise, and where losses are too many to list, nothing.
std::optional<int64_t> moved_integers(const Event& event) {
  const double squares = std::floor(event.sensitivity * event.sensitivity * (1 + 1e-12));
  if (squares < 1 || squares > 3 || !is_discrete_gaussian_stddev(event.noise_scale)) return std::nullopt;
  return static_cast<int64_t>(squares);
}

// A discrete Gaussian of which no more than its Rényi divergences is known.
bool is_known_by_renyi_only(const Event& event) {
  return event.mechanism == kDiscreteGaussianMechanism && !moved_integers(event);
}

// The steps an accountant sees, or nothing if nothing is proven of the release.
std::optional<Steps> steps_of(const Event& event, double multiplier) {
  if (!event.why_unproven.empty()) return std::nullopt;
  Step step;
  int64_t count = event.steps;
  step.sampling_rate = event.sampling_rate;
  step.adjacency = event.neighbours.adjacency;
  step.noise_multiplier = multiplier;
  if (event.mechanism == kGaussianMechanism) {
    step.kind = Step::Kind::kGaussian;
    step.batches = event.batches;
  } else if (event.mechanism == kCohortGaussianMechanism) {
    step.kind = event.sampling_rate < 1 ? Step::Kind::kCohortGaussian : Step::Kind::kGaussian;
  } else if (event.mechanism == kDiscreteGaussianMechanism) {
    step.sampling_rate = 1;
    if (const auto moved = moved_integers(event)) {
      step.kind = Step::Kind::kDiscreteGaussian;
      step.noise_multiplier = event.noise_scale;  // unrounded: less noise need not be worse on a lattice
      count *= *moved;
    } else {
      step.kind = Step::Kind::kGaussian;
    }
  } else if (event.mechanism == kLaplaceMechanism) {
    step.kind = Step::Kind::kLaplace;
  } else if (event.mechanism == kTopKMechanism) {
    step.kind = Step::Kind::kPure;
    step.noise_multiplier = 0;
    step.epsilon = 1 / multiplier;
  } else if (event.mechanism == kGumbelTopKMechanism) {
    step.kind = Step::Kind::kBoundedRange;
    step.noise_multiplier = 0;
    step.epsilon = 1 / multiplier;
  } else {
    return std::nullopt;
  }
  return Steps{step, count};
}

}  // namespace

bool is_seen_by(const Event& event, const std::string& observer) {
  return observer == "server" || event.mechanism != kTrustedMechanism;
}

void Tally::merge(Pile& pile, const Steps& steps) {
  const auto place = std::lower_bound(pile.begin(), pile.end(), steps,
                                      [](const Steps& a, const Steps& b) { return key(a.step) < key(b.step); });
  if (place != pile.end() && key(place->step) == key(steps.step)) {
    place->count += steps.count;
  } else {
    pile.insert(place, steps);
  }
}

void Tally::add(const Event& event, int64_t times) {
  if (!event.why_unproven.empty() && std::find(why_.begin(), why_.end(), event.why_unproven) == why_.end()) {
    why_.insert(std::upper_bound(why_.begin(), why_.end(), event.why_unproven), event.why_unproven);
  }
  if (event.sensitivity == 0) return;
  const auto steps = steps_of(event, rounded_multiplier(event.noise_scale, event.sensitivity));
  if (steps) merge(proven_, {steps->step, steps->count * times});
  slack_ += event.slack * static_cast<double>(times);
  const Claim& claim = event.claim;
  if (claim.by == kClaimRenyi) {
    merge(claimed_renyi_, {Step::gaussian(claim.multiplier, 1.0, event.neighbours.adjacency), claim.steps * times});
  } else if (claim.by == kClaimEach) {
    claimed_each_ += claim.epsilon * static_cast<double>(times);
  } else if (claim.by == kClaimRun) {
    claimed_run_ = std::max(claimed_run_, claim.epsilon);
  } else if (steps) {
    merge(claimed_, {steps->step, steps->count * times});
  }
  renyi_only_ = renyi_only_ || is_known_by_renyi_only(event);
}

void Tally::add(const Tally& other) {
  for (const Steps& steps : other.proven_) merge(proven_, steps);
  for (const Steps& steps : other.claimed_) merge(claimed_, steps);
  for (const Steps& steps : other.claimed_renyi_) merge(claimed_renyi_, steps);
  claimed_each_ += other.claimed_each_;
  claimed_run_ = std::max(claimed_run_, other.claimed_run_);
  slack_ += other.slack_;
  renyi_only_ = renyi_only_ || other.renyi_only_;
  std::vector<std::string> both;
  std::set_union(why_.begin(), why_.end(), other.why_.begin(), other.why_.end(), std::back_inserter(both));
  why_ = std::move(both);
}

double Tally::epsilon_of(const Pile& pile, double delta) const {
  if (pile.empty()) return 0.0;
  if (!(delta > 0)) return kInfinity;
  if (!renyi_only_) return proven_epsilon(pile, delta);
  const auto accountant = make_accountant(Method::kRdp);
  for (const Steps& steps : pile) {
    accountant->compose(steps.step.in_public(), steps.count);  // Rényi divergences know no better
  }
  return accountant->epsilon(delta);
}

double Tally::claimed(double delta) const {
  const bool nothing = claimed_.empty() && claimed_renyi_.empty() && claimed_each_ == 0 && claimed_run_ == 0;
  if (nothing) return why_.empty() ? 0.0 : kInfinity;
  const auto renyi = make_accountant(Method::kRdpPaper);
  for (const Steps& steps : claimed_renyi_) renyi->compose(steps.step, steps.count);
  return epsilon_of(claimed_, delta) + (claimed_renyi_.empty() ? 0.0 : renyi->epsilon(delta)) + claimed_each_ +
         claimed_run_;
}

double Tally::proven(double delta) const {
  if (!why_.empty()) return kInfinity;
  const double near = with_distance(slack_, delta, [&](double left) { return epsilon_of(proven_, left); });
  return near == proven_of_ideal_noise(delta) ? near : std::min(near, proven_by_ratio(delta));
}

double Tally::proven_by_ratio(double delta) const {
  const double numbers = slack_ / kGaussianTotalVariation, off = numbers * kGaussianRelativeError;
  const auto is_gaussian = [](const Steps& steps) {
    return steps.step.kind == Step::Kind::kGaussian || steps.step.kind == Step::Kind::kCohortGaussian;
  };
  if (off > 1e-6 || !std::all_of(proven_.begin(), proven_.end(), is_gaussian)) return kInfinity;
  const double left = (delta - out_of_reach(proven_, numbers)) * (1 - 2e-6);
  return epsilon_of(proven_, left) + 3 * off;
}

double Tally::proven_of_ideal_noise(double delta) const {
  return why_.empty() ? epsilon_of(proven_, delta - slack_) : kInfinity;
}

Guarantee Tally::guarantee(double delta) const {
  Guarantee all{claimed(delta), proven(delta), why_};
  if (std::isinf(all.proven) && std::isfinite(proven_of_ideal_noise(delta))) all.why_unproven = {kTooLittleNoise};
  return all;
}

bool Tally::within(const Tally& other) const {
  const auto covered = [](const Pile& pile, const Pile& by) {
    return std::all_of(pile.begin(), pile.end(), [&](const Steps& mine) {
      return std::any_of(by.begin(), by.end(), [&](const Steps& theirs) {
        return key(mine.step) == key(theirs.step) && mine.count <= theirs.count;
      });
    });
  };
  return covered(proven_, other.proven_) && covered(claimed_, other.claimed_) &&
         covered(claimed_renyi_, other.claimed_renyi_) && claimed_each_ <= other.claimed_each_ * (1 + 1e-12) &&
         claimed_run_ <= other.claimed_run_ && slack_ <= std::max(other.slack_ * (1 + 1e-12), kNegligibleSlack) &&
         renyi_only_ == other.renyi_only_ &&
         std::includes(other.why_.begin(), other.why_.end(), why_.begin(), why_.end());
}

bool Tally::operator<(const Tally& other) const {
  const auto less = [](const Pile& a, const Pile& b) {
    return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(),
                                        [](const Steps& x, const Steps& y) { return key(x) < key(y); });
  };
  if (less(proven_, other.proven_)) return true;
  if (less(other.proven_, proven_)) return false;
  if (less(claimed_, other.claimed_)) return true;
  if (less(other.claimed_, claimed_)) return false;
  if (less(claimed_renyi_, other.claimed_renyi_)) return true;
  if (less(other.claimed_renyi_, claimed_renyi_)) return false;
  return std::tie(claimed_each_, claimed_run_, slack_, renyi_only_, why_) <
         std::tie(other.claimed_each_, other.claimed_run_, other.slack_, other.renyi_only_, other.why_);
}

}  // namespace sotto::privacy

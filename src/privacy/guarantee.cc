#include "privacy/guarantee.h"

#include "privacy/accounting/accountant.h"
#include "privacy/accounting/proven.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <tuple>

namespace sotto::privacy {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

auto key(const Step& step) {
  return std::tuple(step.kind, step.noise_multiplier, step.epsilon, step.delta, step.sampling_rate, step.adjacency);
}

auto key(const Steps& steps) {
  return std::tuple_cat(key(steps.step), std::tuple(steps.count));
}

// The step an accountant sees, or nothing if the release has no noise to account for.
std::optional<Step> step_of(const Event& event, double multiplier) {
  Step step;
  step.sampling_rate = event.sampling_rate;
  step.adjacency = event.neighbours.adjacency;
  step.noise_multiplier = multiplier;
  if (event.mechanism == kGaussianMechanism) {
    step.kind = Step::Kind::kGaussian;
  } else if (event.mechanism == kDiscreteGaussianMechanism) {
    step.kind = Step::Kind::kGaussian;
    step.sampling_rate = 1;
  } else if (event.mechanism == kLaplaceMechanism) {
    step.kind = Step::Kind::kLaplace;
  } else if (event.mechanism == kTopKMechanism) {
    step.kind = Step::Kind::kPure;
    step.noise_multiplier = 0;
    step.epsilon = 1 / multiplier;
  } else {
    return std::nullopt;
  }
  return step;
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
  const double true_multiplier = event.noise / event.sensitivity;
  const double claimed = event.claimed_multiplier > 0 ? event.claimed_multiplier : true_multiplier;
  const int64_t count = event.steps * times;
  if (const auto step = step_of(event, true_multiplier)) merge(proven_, {*step, count});
  if (const auto step = step_of(event, claimed)) merge(claimed_, {*step, count});
  slack_ += event.slack * static_cast<double>(times);
  renyi_only_ = renyi_only_ || event.mechanism == kDiscreteGaussianMechanism;
}

void Tally::add(const Tally& other) {
  for (const Steps& steps : other.proven_) merge(proven_, steps);
  for (const Steps& steps : other.claimed_) merge(claimed_, steps);
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
  for (const Steps& steps : pile) accountant->compose(steps.step, steps.count);
  return accountant->epsilon(delta);
}

double Tally::claimed(double delta) const {
  return claimed_.empty() && !why_.empty() ? kInfinity : epsilon_of(claimed_, delta);
}

double Tally::proven(double delta) const {
  return why_.empty() ? epsilon_of(proven_, delta - slack_) : kInfinity;
}

Guarantee Tally::guarantee(double delta) const {
  return {claimed(delta), proven(delta), why_};
}

bool Tally::within(const Tally& other) const {
  const auto covered = [](const Pile& pile, const Pile& by) {
    return std::all_of(pile.begin(), pile.end(), [&](const Steps& mine) {
      return std::any_of(by.begin(), by.end(), [&](const Steps& theirs) {
        return key(mine.step) == key(theirs.step) && mine.count <= theirs.count;
      });
    });
  };
  return covered(proven_, other.proven_) && covered(claimed_, other.claimed_) && slack_ <= other.slack_ * (1 + 1e-12) &&
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
  return std::tie(slack_, renyi_only_, why_) < std::tie(other.slack_, other.renyi_only_, other.why_);
}

}  // namespace sotto::privacy

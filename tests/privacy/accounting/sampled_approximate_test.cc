// Certificates of sampled (ε, δ) steps against the hockey-stick divergence of the worst pair, summed term by term: the
// composed pair of n steps with m finite losses has few enough outcomes to write down.
#include "privacy/accounting/loss_grid.h"
#include "privacy/accounting/pld.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace sotto::privacy {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// One step: what either distribution gives to each outcome. An outcome that Q never shows is revealed.
struct Outcome {
  long double p = 0;
  long double q = 0;
};
using Pair = std::vector<Outcome>;

// Randomised response that shows its input with probability delta: yes, no, "the record is in", "the record is out".
Pair unsampled_pair(long double epsilon, long double delta) {
  const long double yes = (1 - delta) / (1 + std::exp(-epsilon));
  const long double no = yes * std::exp(-epsilon);
  return {{yes, no}, {no, yes}, {delta, 0}, {0, delta}};
}

Pair sampled_pair(const Step& step) {
  const long double rate = step.sampling_rate;
  Pair pair = unsampled_pair(step.epsilon, step.delta);
  for (Outcome& outcome : pair) outcome.p = (1 - rate) * outcome.q + rate * outcome.p;
  return pair;
}

Pair swapped(Pair pair) {
  for (Outcome& outcome : pair) std::swap(outcome.p, outcome.q);
  return pair;
}

// The symmetric curve that bounds every pair under replace: its losses are those of `sampled_pair` above 0, mirrored,
// and 0.
Pair mirrored_pair(const Step& step) {
  const Pair sampled = sampled_pair(step);
  const Outcome high = sampled[0];
  const long double revealed = sampled[2].p;
  const long double rest = 1 - revealed - high.p - high.q;
  return {high, {high.q, high.p}, {rest, rest}, {revealed, 0}, {0, revealed}};
}

// ln of each multiset of `count` finite losses, with its loss and P-mass.
class Composed {
 public:
  Composed(const Pair& pair, int64_t count) {
    std::vector<Outcome> finite;
    long double kept = 0;
    for (const Outcome& outcome : pair) {
      if (outcome.p > 0 && outcome.q > 0) finite.push_back(outcome);
      if (outcome.p > 0 && outcome.q == 0) kept += std::log1p(-outcome.p);
    }
    revealed_ = -std::expm1(static_cast<long double>(count) * kept);
    enumerate(finite, 0, count, std::lgamma(static_cast<long double>(count) + 1), 0);
  }

  long double delta(long double epsilon) const {
    long double sum = revealed_;
    for (const Term& term : terms_) {
      if (term.loss > epsilon) sum += term.p * -std::expm1(epsilon - term.loss);
    }
    return sum;
  }

  // The smallest ε ≥ 0 with delta(ε) ≤ `target`.
  double epsilon(double target) const {
    if (revealed_ >= target) return kInfinity;
    if (delta(0) <= target) return 0;
    long double low = 0;
    long double high = 1;
    while (delta(high) > target) high *= 2;
    for (int i = 0; i < 80; ++i) {
      const long double middle = (low + high) / 2;
      (delta(middle) <= target ? high : low) = middle;
    }
    return static_cast<double>(high);
  }

 private:
  struct Term {
    long double loss = 0;
    long double p = 0;
  };

  void enumerate(const std::vector<Outcome>& finite, size_t at, int64_t left, long double log_p, long double loss) {
    const Outcome& outcome = finite[at];
    const long double one_loss = std::log(outcome.p) - std::log(outcome.q);
    const bool last = at + 1 == finite.size();
    for (int64_t times = last ? left : 0; times <= left; ++times) {
      const auto n = static_cast<long double>(times);
      const long double log_here = log_p + n * std::log(outcome.p) - std::lgamma(n + 1);
      if (last) {
        terms_.push_back({loss + n * one_loss, std::exp(log_here)});
      } else {
        enumerate(finite, at + 1, left - times, log_here, loss + n * one_loss);
      }
    }
  }

  std::vector<Term> terms_;
  long double revealed_ = 0;
};

double add_remove_epsilon(const Step& step, int64_t count, double delta) {
  const Pair remove = sampled_pair(step);
  return std::max(Composed(remove, count).epsilon(delta), Composed(swapped(remove), count).epsilon(delta));
}

struct Case {
  Step step;
  int64_t count = 1;
  double delta = 0;
};

double largest_composed_loss(const Case& c) {
  return static_cast<double>(c.count) *
         std::max(largest_loss(c.step, Direction::kRemove), largest_loss(c.step, Direction::kAdd));
}

std::string described(const Step& step, int64_t count, double delta) {
  return fmt::format("epsilon {}, delta {}, rate {}, {}, {} steps, at {}", step.epsilon, step.delta, step.sampling_rate,
                     to_text(step.adjacency), count, delta);
}

std::vector<Case> sweep(Adjacency adjacency) {
  std::vector<Case> cases;
  for (const double epsilon : {1e-3, 0.5, 3.0, 20.0}) {
    for (const double step_delta : {0.0, 1e-12, 1e-5, 0.3}) {
      for (const double rate : {1e-3, 0.3, 0.9, 0.999}) {
        for (const int64_t count : {1, 7, 40}) {
          const double revealed = -std::expm1(static_cast<double>(count) * std::log1p(-rate * step_delta));
          for (const double delta : {1e-6, 1.5 * revealed}) {
            if (delta <= 0 || delta >= 1) continue;
            cases.push_back({Step::approximate(epsilon, step_delta, rate, adjacency), count, delta});
          }
        }
      }
    }
  }
  return cases;
}

TEST(SampledApproximate, IsJustAboveTheDivergenceOfTheWorstPairUnderAddRemove) {
  for (const Case& c : sweep(Adjacency::kAddRemove)) {
    SCOPED_TRACE(described(c.step, c.count, c.delta));
    const double exact = add_remove_epsilon(c.step, c.count, c.delta);
    const Steps steps{c.step, c.count};
    const double certified = pld_epsilon({&steps, 1}, c.delta);
    EXPECT_GE(certified, exact * (1 - 1e-12));
    if (std::isinf(exact)) continue;
    EXPECT_LE(certified, largest_composed_loss(c) * (1 + 1e-9));
    // Where a loss of 7 with a mass of 1e-12 stands beside losses of 0.001 the grid is too coarse to be tight.
    if (c.delta >= 1e-10 || c.step.epsilon >= 0.01) {
      EXPECT_LE(certified, exact * 1.001 + 1e-8);
    }
  }
}

// A mechanism may treat one record as if it were none, so replacing is at least as telling as adding or removing.
TEST(SampledApproximate, UnderReplaceIsAboveAddRemoveAndNearTheMirroredCurve) {
  for (const Case& c : sweep(Adjacency::kReplace)) {
    SCOPED_TRACE(described(c.step, c.count, c.delta));
    const double bound = Composed(mirrored_pair(c.step), c.count).epsilon(c.delta);
    const Steps steps{c.step, c.count};
    const double certified = pld_epsilon({&steps, 1}, c.delta);
    EXPECT_GE(certified, add_remove_epsilon(c.step, c.count, c.delta) * (1 - 1e-12));
    EXPECT_GE(certified, bound * (1 - 1e-12));
    EXPECT_LE(certified, bound * 1.001 + 1e-8);
  }
}

TEST(SampledApproximate, DeltaIsJustAboveTheSumInBothDirections) {
  for (const double rate : {0.01, 0.3, 0.99}) {
    const Step step = Step::approximate(0.7, 1e-5, rate);
    const Steps steps{step, 20};
    const Pair remove = sampled_pair(step);
    for (const double epsilon : {0.0, 0.2, 1.0, 4.0, 30.0}) {
      const auto exact = static_cast<double>(
          std::max(Composed(remove, 20).delta(epsilon), Composed(swapped(remove), 20).delta(epsilon)));
      const double certified = std::exp(pld_log_delta({&steps, 1}, epsilon));
      EXPECT_GE(certified, exact * (1 - 1e-12)) << rate << " " << epsilon;
      EXPECT_LE(certified, exact * 1.01) << rate << " " << epsilon;
    }
  }
}

TEST(SampledApproximate, AtARateOfNearlyOneAgreesWithNotSampling) {
  for (const Adjacency adjacency : {Adjacency::kAddRemove, Adjacency::kReplace}) {
    for (const double epsilon : {0.05, 0.5, 3.0}) {
      const Steps whole{Step::approximate(epsilon, 1e-7), 30};
      const double unsampled = pld_epsilon({&whole, 1}, 1e-5);
      EXPECT_NEAR(unsampled, Composed(unsampled_pair(epsilon, 1e-7), 30).epsilon(1e-5), unsampled * 1e-3);
      for (const double missing : {1e-7, 1e-10, 1e-15}) {
        const Steps nearly{Step::approximate(epsilon, 1e-7, 1 - missing, adjacency), 30};
        const double sampled = pld_epsilon({&nearly, 1}, 1e-5);
        EXPECT_NEAR(sampled, unsampled, unsampled * 1e-3) << epsilon << " " << missing << " " << to_text(adjacency);
      }
    }
  }
}

TEST(SampledApproximate, HoldsForLossesNearAndBeyondWhatAnExponentialCanHold) {
  for (const double epsilon : {300.0, 700.0, 2000.0}) {
    for (const double step_delta : {0.0, 1e-6}) {
      const Steps steps{Step::approximate(epsilon, step_delta, 0.2), 1};
      // With one step ε is the loss of "yes" but for δ, which at these losses shifts it by ln(1 - δ'/P(yes)).
      const double certified = pld_epsilon({&steps, 1}, 1e-4);
      const double top = epsilon + std::log(0.2);
      EXPECT_LE(certified, top * (1 + 1e-9)) << epsilon;
      EXPECT_GE(certified, top - 1e-3) << epsilon;
    }
  }
}

// Every loss of the pair must have a place on the grid, whatever the spacing, and all of P and of Q must be there.
TEST(SampledApproximate, GridHoldsAllOfBothDistributions) {
  for (const double epsilon : {1e-4, 0.5, 5.0, 40.0}) {
    for (const double rate : {1e-6, 0.1, 0.9, 1 - 1e-12}) {
      for (const double step_delta : {0.0, 1e-9, 0.2}) {
        for (const Adjacency adjacency : {Adjacency::kAddRemove, Adjacency::kReplace}) {
          const Step step = Step::approximate(epsilon, step_delta, rate, adjacency);
          SCOPED_TRACE(described(step, 1, 0));
          const double widest = std::max(epsilon, -std::log1p(-rate));
          for (const double spacing : {widest / 3000.7, widest / 17.3, widest * 2}) {
            const LossGrid grid = discretise(step, spacing, 1e-12);
            double p = grid.p_at_infinity;
            double q = grid.q_at_infinity;
            for (size_t i = 0; i < grid.mass.size(); ++i) {
              p += grid.mass[i];
              q += grid.mass[i] * std::exp(-static_cast<double>(grid.first + static_cast<int64_t>(i)) * spacing);
            }
            EXPECT_NEAR(p, 1, 1e-9);
            EXPECT_NEAR(q, 1, 1e-9);
            EXPECT_TRUE(std::isfinite(grid.position_error));
            EXPECT_LT(grid.position_error, 1e-12 * (1 + widest));
            const LossGrid other = grid.swapped();
            EXPECT_NEAR(std::accumulate(other.mass.begin(), other.mass.end(), other.p_at_infinity), 1, 1e-9);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace sotto::privacy

// What private selection is said to cost, against what it costs in cases small enough to write down: the law of the best
// of K trials is f(F(y)) - f(F(y-)) with f the generating function of K and F that of one trial.
#include "privacy/accounting/private_selection.h"

#include "../../support/expect_user_error.h"
#include "privacy/accounting/proven.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace sotto::privacy {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

using Law = std::vector<long double>;  // of outcomes, the worst first

struct Worlds {
  std::string name;
  Law one, other;
  std::vector<Steps> steps;  // of which the outcome is a function
};

// How many of `count` randomised responses said yes; ties are the same outcome.
Worlds responses(double epsilon, int count) {
  const auto counts = [&](long double yes) {
    Law law;
    for (int k = 0; k <= count; ++k) {
      law.push_back(std::exp(std::lgamma(count + 1.0L) - std::lgamma(k + 1.0L) - std::lgamma(count - k + 1.0L)) *
                    std::pow(yes, k) * std::pow(1 - yes, count - k));
    }
    return law;
  };
  const long double yes = 1 / (1 + std::exp(-static_cast<long double>(epsilon)));
  return {"responses", counts(yes), counts(1 - yes), {{Step::pure(epsilon), count}}};
}

// The probability of (low, high) under N(0, 1), without cancellation in either tail.
long double normal_mass(long double low, long double high) {
  if (low > 0) return normal_mass(-high, -low);
  return (std::erfc(-high / std::sqrt(2.0L)) - std::erfc(-low / std::sqrt(2.0L))) / 2;
}

// A Gaussian that is only shown by the cell of a fine grid it falls into.
Worlds rounded_gaussian(double multiplier) {
  const long double mu = 1 / static_cast<long double>(multiplier);
  const long double infinity = std::numeric_limits<long double>::infinity();
  Law one, other;
  long double low = -infinity;
  for (long double high = -16; low < 16 + mu; high += 0.02L) {
    if (high > 16 + mu) high = infinity;
    one.push_back(normal_mass(low - mu, high - mu));
    other.push_back(normal_mass(low, high));
    low = high;
  }
  return {"gaussian", one, other, {{Step::gaussian(multiplier), 1}}};
}

// Both worlds in both roles, with either end of the scale the best.
std::vector<Worlds> all_roles(const Worlds& worlds) {
  Worlds swapped = worlds;
  std::swap(swapped.one, swapped.other);
  std::vector<Worlds> roles = {worlds, swapped};
  for (Worlds reversed : {worlds, swapped}) {
    std::reverse(reversed.one.begin(), reversed.one.end());
    std::reverse(reversed.other.begin(), reversed.other.end());
    roles.push_back(std::move(reversed));
  }
  return roles;
}

// f(below + p) - f(below), where `above` = 1 - below - p.
long double step_of(const TrialLaw& law, long double below, long double p, long double above) {
  const long double gamma = law.gamma(), shape = law.shape();
  if (law.is_poisson()) return std::exp(law.mean() * (below - 1)) * std::expm1(law.mean() * p);
  const long double rest = gamma + (1 - gamma) * (above + p);  // 1 - (1-γ)·below
  const long double logarithm = std::log1p(-(1 - gamma) * p / rest);
  if (law.shape() == 0) return logarithm / std::log(gamma);
  return std::pow(rest, -shape) * std::expm1(-shape * logarithm) / std::expm1(-shape * std::log(gamma));
}

// The first entry stands for nothing: no trial was made.
Law best_of(const Law& trial, const TrialLaw& law) {
  Law above(trial.size() + 1);
  for (size_t i = trial.size(); i-- > 0;) above[i] = above[i + 1] + trial[i];
  Law best = {law.is_poisson() ? std::exp(-static_cast<long double>(law.mean())) : 0.0L};
  long double below = 0;
  for (size_t i = 0; i < trial.size(); ++i) {
    best.push_back(step_of(law, below, trial[i], above[i + 1]));
    below += trial[i];
  }
  return best;
}

double divergence(const Law& p, const Law& q, double order) {
  std::vector<long double> terms;
  for (size_t i = 0; i < p.size(); ++i) {
    if (p[i] > 0 && q[i] > 0) terms.push_back(order * std::log(p[i]) + (1 - order) * std::log(q[i]));
  }
  const long double highest = *std::max_element(terms.begin(), terms.end());
  long double sum = 0;
  for (const long double term : terms) sum += std::exp(term - highest);
  return static_cast<double>((highest + std::log(sum)) / (order - 1));
}

double hockey_stick(const Law& p, const Law& q, double epsilon) {
  long double sum = 0;
  for (size_t i = 0; i < p.size(); ++i)
    sum += std::max(0.0L, p[i] - std::exp(static_cast<long double>(epsilon)) * q[i]);
  return static_cast<double>(sum);
}

const std::vector<TrialLaw>& laws() {
  static const std::vector<TrialLaw> all = {
      TrialLaw::logarithmic(1.5),
      TrialLaw::logarithmic(10),
      TrialLaw::logarithmic(300),
      TrialLaw::geometric(2),
      TrialLaw::geometric(40),
      TrialLaw::truncated_negative_binomial(0.5, 10),
      TrialLaw::truncated_negative_binomial(3, 20),
      TrialLaw::poisson(0.1),
      TrialLaw::poisson(1),
      TrialLaw::poisson(20),
      TrialLaw::poisson(300),
  };
  return all;
}

std::vector<Worlds> small_cases() {
  return {responses(0.01, 1), responses(0.5, 1),     responses(3, 1),
          responses(0.3, 12), rounded_gaussian(0.7), rounded_gaussian(5)};
}

TEST(PrivateSelection, BoundsTheExactDivergence) {
  for (const Worlds& worlds : small_cases()) {
    const std::vector<TrialCost> trials = {{.steps = worlds.steps}};
    for (const TrialLaw& law : laws()) {
      for (const double order : {1.05, 1.5, 2.0, 4.0, 16.0, 64.0}) {
        const double bound = selection_divergence(trials, law, order);
        for (const Worlds& role : all_roles(worlds)) {
          const double exact = divergence(best_of(role.one, law), best_of(role.other, law), order);
          EXPECT_LE(exact, bound + 1e-9) << worlds.name << ", mean " << law.mean() << ", shape " << law.shape()
                                         << ", order " << order;
        }
      }
    }
  }
}

TEST(PrivateSelection, BoundsTheExactDelta) {
  for (const Worlds& worlds : small_cases()) {
    const std::vector<TrialCost> trials = {{.steps = worlds.steps}};
    for (const TrialLaw& law : laws()) {
      for (const double delta : {1e-2, 1e-5, 1e-8}) {
        const double epsilon = selection_epsilon(trials, law, delta);
        EXPECT_TRUE(std::isfinite(epsilon) || law.is_poisson()) << worlds.name << ", mean " << law.mean();
        if (!std::isfinite(epsilon)) continue;
        for (const Worlds& role : all_roles(worlds)) {
          EXPECT_LE(hockey_stick(best_of(role.one, law), best_of(role.other, law), epsilon), delta)
              << worlds.name << ", mean " << law.mean() << ", shape " << law.shape();
        }
      }
    }
  }
}

// Without the outcome "no trial was made" the bound of the paper would be negative here.
TEST(PrivateSelection, FewTrialsAreNotFree) {
  const Worlds worlds = responses(0.01, 1);
  const TrialLaw law = TrialLaw::poisson(0.1);
  const double order = 2;
  const double as_printed = 0.01 * 0.01 / 2 * order + std::log(law.mean()) / (order - 1);
  EXPECT_LT(as_printed, 0);
  const double exact = divergence(best_of(worlds.one, law), best_of(worlds.other, law), order);
  EXPECT_GT(exact, 0);
  EXPECT_GE(selection_divergence(std::vector<TrialCost>{{.steps = worlds.steps}}, law, order), exact);
}

TEST(PrivateSelection, CostsFarLessThanShowingEverything) {
  const TrialCost trial = {.steps = {{Step::gaussian(20), 10}}};
  const double one = proven_epsilon(trial.steps, 1e-6);
  const double everything = all_runs_epsilon(std::vector<ShownRuns>{{{trial}, 200}}, 1e-6);
  const double best = selection_epsilon(std::vector<TrialCost>{trial}, TrialLaw::logarithmic(200), 1e-6);
  EXPECT_GT(best, one);
  EXPECT_LT(best, 4 * one);
  EXPECT_LT(best, everything / 4);
}

TEST(PrivateSelection, GrowsWithTheNumberOfTrials) {
  const std::vector<TrialCost> trials = {{.steps = {{Step::gaussian(5), 4}}}};
  double previous = 0;
  for (const double mean : {1.1, 2.0, 10.0, 100.0, 1000.0}) {
    const double epsilon = selection_epsilon(trials, TrialLaw::logarithmic(mean), 1e-5);
    EXPECT_GT(epsilon, previous);
    previous = epsilon;
  }
  EXPECT_GT(selection_epsilon(trials, TrialLaw::geometric(100), 1e-5),
            selection_epsilon(trials, TrialLaw::logarithmic(100), 1e-5));
}

TEST(PrivateSelection, TheWorstAlternativeCounts) {
  const TrialCost loud = {.steps = {{Step::gaussian(50), 1}}}, quiet = {.steps = {{Step::gaussian(2), 1}}};
  const TrialLaw law = TrialLaw::logarithmic(10);
  const double alone = selection_epsilon(std::vector<TrialCost>{quiet}, law, 1e-5);
  EXPECT_EQ(selection_epsilon(std::vector<TrialCost>{loud, quiet}, law, 1e-5), alone);
  EXPECT_GT(alone, selection_epsilon(std::vector<TrialCost>{loud}, law, 1e-5));
}

TEST(PrivateSelection, DiscreteNoiseIsHeldToItsDivergences) {
  TrialCost trial = {.steps = {{Step::gaussian(5), 1}}};
  const TrialLaw law = TrialLaw::poisson(20);
  const double continuous = selection_epsilon(std::vector<TrialCost>{trial}, law, 1e-5);
  trial.renyi_only = true;
  EXPECT_GE(selection_epsilon(std::vector<TrialCost>{trial}, law, 1e-5), continuous);
}

TEST(PrivateSelection, PrecisionIsPaidFor) {
  TrialCost trial = {.steps = {{Step::gaussian(5), 1}}};
  const TrialLaw law = TrialLaw::logarithmic(20);
  const double ideal = selection_epsilon(std::vector<TrialCost>{trial}, law, 1e-5);
  trial.slack = 1e-9;
  EXPECT_GT(selection_epsilon(std::vector<TrialCost>{trial}, law, 1e-5), ideal);
  trial.slack = 1e-5;
  EXPECT_EQ(selection_epsilon(std::vector<TrialCost>{trial}, law, 1e-5), kInfinity);
}

TEST(PrivateSelection, NothingReleasedCostsNothing) {
  EXPECT_EQ(selection_epsilon({}, TrialLaw::logarithmic(10), 1e-5), 0);
  EXPECT_EQ(selection_epsilon(std::vector<TrialCost>(2), TrialLaw::poisson(10), 1e-5), 0);
  EXPECT_EQ(all_runs_epsilon({}, 1e-5), 0);
}

TEST(AllRuns, AreTheCompositionOfEach) {
  const TrialCost one = {.steps = {{Step::gaussian(20), 3}}}, other = {.steps = {{Step::gaussian(10), 1}}};
  const std::vector<Steps> both = {{Step::gaussian(20), 3}, {Step::gaussian(10), 1}};
  EXPECT_EQ(all_runs_epsilon(std::vector<ShownRuns>{{{one}}, {{other}}}, 1e-5), proven_epsilon(both, 1e-5));
}

// A record may be held by a client that spends little in one run and by one that spends much in the next.
TEST(AllRuns, CoverEveryAlternative) {
  const TrialCost one = {.steps = {{Step::gaussian(20), 3}}}, other = {.steps = {{Step::gaussian(10), 1}}};
  const double mixed = all_runs_epsilon(std::vector<ShownRuns>{{{one, other}, 2}}, 1e-5);
  const std::vector<Steps> worst = {{Step::gaussian(10), 2}}, least = {{Step::gaussian(20), 6}};
  EXPECT_GE(mixed, proven_epsilon(worst, 1e-5));
  EXPECT_GE(mixed, proven_epsilon(least, 1e-5));
  EXPECT_LT(mixed, 1.3 * proven_epsilon(worst, 1e-5));
}

TEST(TrialLaw, HasItsMean) {
  for (const TrialLaw& law : laws()) {
    long double total = 0, mean = 0;
    for (int64_t k = 0; k < 12000 && total < 1 - 1e-9L; ++k) {
      total += law.probability(k);
      mean += law.probability(k) * static_cast<long double>(k);
    }
    EXPECT_NEAR(static_cast<double>(total), 1, 1e-3) << law.mean() << " " << law.shape();
    EXPECT_NEAR(static_cast<double>(mean), law.mean(), 1e-2 * law.mean()) << law.shape();
  }
  EXPECT_NEAR(TrialLaw::geometric(4).gamma(), 0.25, 1e-12);
  EXPECT_NEAR(static_cast<double>(TrialLaw::geometric(4).probability(3)), 0.25 * 0.75 * 0.75, 1e-12);
}

TEST(TrialLaw, IsDrawnFrom) {
  std::mt19937_64 random(7);
  for (const TrialLaw& law : {TrialLaw::logarithmic(5), TrialLaw::geometric(5), TrialLaw::poisson(5)}) {
    const int draws = 40000;
    std::vector<int> seen(6);
    for (int i = 0; i < draws; ++i) {
      const int64_t k = law.draw([&] { return random(); });
      if (k < 6) ++seen[static_cast<size_t>(k)];
    }
    for (int64_t k = 0; k < 6; ++k) {
      const auto p = static_cast<double>(law.probability(k));
      EXPECT_NEAR(seen[static_cast<size_t>(k)], draws * p, 5 * std::sqrt(draws * p * (1 - p)) + 1e-9);
    }
  }
  EXPECT_EQ(TrialLaw::geometric(5).draw([] { return uint64_t{0}; }), 1);
  EXPECT_EQ(TrialLaw::poisson(5).draw([] { return uint64_t{0}; }), 0);
  EXPECT_GT(TrialLaw::logarithmic(5).draw([] { return ~uint64_t{0}; }), 50);
  EXPECT_GE(TrialLaw::logarithmic(1000).draw([&] { return random(); }), 1);
}

TEST(TrialLaw, RefusesWhatIsNoLaw) {
  for (const double mean : {1.0, 0.0, -1.0, 1e4, kInfinity, std::nan("")}) {
    EXPECT_USER_ERROR(TrialLaw::logarithmic(mean), "mean number of trials");
  }
  for (const double shape : {-1.0, -0.1, 11.0, kInfinity, std::nan("")}) {
    EXPECT_USER_ERROR(TrialLaw::truncated_negative_binomial(shape, 10), "shape");
  }
  for (const double mean : {0.0, -1.0, 1e4, kInfinity, std::nan("")}) {
    EXPECT_USER_ERROR(TrialLaw::poisson(mean), "Poisson");
  }
  const std::vector<TrialCost> trials = {{.steps = {{Step::gaussian(5), 1}}}};
  EXPECT_USER_ERROR(selection_epsilon(trials, TrialLaw::poisson(5), 0), "delta");
  EXPECT_USER_ERROR(selection_divergence(trials, TrialLaw::poisson(5), 1), "order");
}

}  // namespace
}  // namespace sotto::privacy

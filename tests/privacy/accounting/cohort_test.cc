// Cohorts of fixed size, drawn in secret: the certified bound against quadrature of pairs that a federation really makes.
#include "base/error.h"
#include "privacy/accounting/accountant.h"
#include "privacy/accounting/calibrate.h"
#include "privacy/accounting/gaussian.h"
#include "privacy/accounting/proven.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace sotto::privacy {
namespace {

// What a release looks like with our client and without it, along one direction, in units of Δ: our client adds `own`
// or `other`, whoever takes its place adds `stranger`; the rest of the cohort is fixed.
struct Federation {
  double q, own, other, stranger;

  double density(double x, double z, bool with) const {
    const auto normal = [&](double mean) { return std::exp(-(x - mean) * (x - mean) / (2 * z * z)); };
    return (q * normal(with ? own : other) + (1 - q) * normal(stranger)) / (z * std::sqrt(2 * M_PI));
  }

  // sup over sets of P - e^ε Q, the worse of both directions, by quadrature.
  double delta(double z, double epsilon) const {
    double removed = 0, added = 0;
    const double step = z / 80;
    for (double x = -14 * z - 2; x < 14 * z + 2; x += step) {
      const double p = density(x, z, true), r = density(x, z, false);
      removed += std::max(0.0, p - std::exp(epsilon) * r) * step;
      added += std::max(0.0, r - std::exp(epsilon) * p) * step;
    }
    return std::max(removed, added);
  }
};

double certified_delta(double z, double q, Adjacency adjacency, double epsilon) {
  const Steps one{Step::cohort(z, q, adjacency), 1};
  return proven_delta({&one, 1}, epsilon);
}

TEST(Cohort, NoFederationIsToldApartMoreEasilyThanIsCertified) {
  for (const double q : {0.02, 0.2, 0.7}) {
    for (const double z : {0.7, 1.5, 4.0}) {
      for (const double epsilon : {0.05, 0.5, 2.0}) {
        const double one_sided = certified_delta(z, q, Adjacency::kZeroOut, epsilon);
        for (const double stranger : {-1.0, -0.5, 0.0, 0.5, 1.0}) {
          const Federation added{q, 1, 0, stranger};
          EXPECT_LE(added.delta(z, epsilon), one_sided * (1 + 1e-4) + 1e-13) << q << ' ' << z << ' ' << stranger;
        }
        const double replaced = certified_delta(z, q, Adjacency::kReplace, epsilon);
        for (const double stranger : {-0.5, 0.0, 0.5}) {
          const Federation changed{q, 0.5, -0.5, stranger};
          EXPECT_LE(changed.delta(z, epsilon), replaced * (1 + 1e-4) + 1e-13) << q << ' ' << z << ' ' << stranger;
        }
      }
    }
  }
}

// Strangers who say the opposite cost more than half of what is certified, and far more than nobody in their place.
TEST(Cohort, StrangersWhoSayTheOppositeAreWhatItCosts) {
  const double z = 1, q = 0.02, epsilon = 0.3;
  const Federation opposite{q, 1, 0, -1}, poisson{q, 1, 0, 0};
  EXPECT_GT(opposite.delta(z, epsilon), 0.5 * certified_delta(z, q, Adjacency::kZeroOut, epsilon));
  EXPECT_GT(opposite.delta(z, epsilon), 10 * poisson.delta(z, epsilon));
}

// Rounds of a real federation of clients who add ±1: the loss of the true pair, by simulation.
TEST(Cohort, ComposesToNoLessThanASimulationFinds) {
  const double z = 1.2, q = 0.25, epsilon = 1.0;
  const int rounds = 8, trials = 200000;
  const Federation worst{q, 1, 0, -1};
  const Steps all{Step::cohort(z, q, Adjacency::kZeroOut), rounds};
  std::mt19937_64 random(3);
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform;
  double sum = 0, squares = 0;
  for (int trial = 0; trial < trials; ++trial) {
    double loss = 0;
    for (int round = 0; round < rounds; ++round) {
      const double mean = uniform(random) < q ? worst.own : worst.stranger;
      const double x = mean + z * normal(random);
      loss += std::log(worst.density(x, z, true) / worst.density(x, z, false));
    }
    const double value = std::max(0.0, -std::expm1(epsilon - loss));
    sum += value;
    squares += value * value;
  }
  const double mean = sum / trials, error = std::sqrt((squares / trials - mean * mean) / trials);
  const double certified = proven_delta({&all, 1}, epsilon);
  EXPECT_GE(certified, mean - 4 * error);
  EXPECT_LE(certified, 4 * mean) << "far from tight";
}

TEST(Cohort, IsNeverWorseThanOneThatEverybodyKnows) {
  for (const double q : {0.01, 0.3, 0.9}) {
    for (const Adjacency adjacency : {Adjacency::kZeroOut, Adjacency::kReplace}) {
      const Steps hidden{Step::cohort(1.5, q, adjacency), 20}, known{Step::gaussian(1.5), 20};
      EXPECT_LE(proven_epsilon({&hidden, 1}, 1e-5), proven_epsilon({&known, 1}, 1e-5));
    }
  }
}

TEST(Cohort, CalibratedNoiseKeepsItsBudgetAndIsFarLess) {
  const CalibrationTarget target{2, 1e-5, Method::kPld};
  const double z = calibrate(target, Step::cohort(1, 0.02, Adjacency::kZeroOut), 100);
  const Steps spent{Step::cohort(z, 0.02, Adjacency::kZeroOut), 100};
  EXPECT_LE(proven_epsilon({&spent, 1}, 1e-5), 2);
  EXPECT_GT(proven_epsilon({&spent, 1}, 1e-5), 1.99);
  EXPECT_LT(z, 0.4 * std::sqrt(100) / gaussian_mu(2, 1e-5));
  EXPECT_GT(z, calibrate(target, Step::gaussian(1, 0.02, Adjacency::kZeroOut), 100)) << "Poisson cohorts need less";
}

TEST(Cohort, OtherAccountantsCountItInPublic) {
  const auto rdp = make_accountant(Method::kRdp);
  rdp->compose(Step::cohort(1.5, 0.1, Adjacency::kZeroOut), 3);
  const auto known = make_accountant(Method::kRdp);
  known->compose(Step::gaussian(1.5), 3);
  EXPECT_EQ(rdp->epsilon(1e-5), known->epsilon(1e-5));
  const auto saddle = make_accountant(Method::kSaddle);
  saddle->compose(Step::cohort(1.5, 0.1, Adjacency::kZeroOut), 3);
  EXPECT_THROW(saddle->epsilon(1e-5), UserError);
}

}  // namespace
}  // namespace sotto::privacy

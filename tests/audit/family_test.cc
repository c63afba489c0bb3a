// Sampled and allocated steps: audits come near their ε, stay below it, and find batches that are no secret.
#include "audit/family.h"

#include "audit/mechanisms.h"
#include "base/parallel.h"
#include "base/random.h"
#include "privacy/accounting/gaussian.h"
#include "privacy/calibration.h"

#include <boost/math/distributions/normal.hpp>
#include <gtest/gtest.h>

#include <cmath>

namespace sotto::audit {
namespace {

using privacy::Adjacency;
using privacy::Step;
using privacy::Steps;

constexpr double kDelta = 1e-5;
constexpr double kEpsilon = 2;

// An epoch of this many steps; Poisson at the same rate, or one of them.
constexpr int64_t kBatches = 8;
constexpr int64_t kEpochs = 2;
constexpr double kRate = 1.0 / kBatches;

enum class Dealt { kPoisson, kAllocated };

Steps steps_of(Dealt dealt, double noise) {
  if (dealt == Dealt::kPoisson) return {Step::gaussian(noise, kRate, Adjacency::kZeroOut), kBatches * kEpochs};
  return {Step::allocated(noise, kBatches, Adjacency::kZeroOut), kEpochs};
}

double noise_for(double epsilon, Dealt dealt) {
  return dealt == Dealt::kPoisson
             ? privacy::noise_multiplier_for(epsilon, kDelta, kBatches * kEpochs, kRate, Adjacency::kZeroOut)
             : privacy::noise_multiplier_for(epsilon, kDelta, kEpochs, 1, Adjacency::kZeroOut, kBatches);
}

// What an observer of all steps makes of them; of an observer who knows the batches too, if they are no secret.
class Observed {
 public:
  Observed(Dealt dealt, double noise, bool secret = true) : dealt_(dealt), noise_(noise), secret_(secret) {}

  double operator()(World world, RandomStream& stream) const {
    double sum = 0;
    for (int64_t epoch = 0; epoch < kEpochs; ++epoch) {
      const auto drawn = static_cast<int64_t>(stream.uniform() * kBatches);
      double mean = 0;
      for (int64_t i = 0; i < kBatches; ++i) {
        const bool in = dealt_ == Dealt::kPoisson ? stream.bernoulli(kRate) : i == drawn;
        const double x = (world == World::kWith && in ? 1.0 : 0.0) + noise_ * stream.normal();
        const double loss = (x - 0.5) / (noise_ * noise_);
        if (!secret_) {
          sum += in ? loss : 0;
        } else if (dealt_ == Dealt::kPoisson) {
          sum += std::log1p(kRate * std::expm1(loss));
        } else {
          mean += std::exp(loss) / kBatches;
        }
      }
      if (secret_ && dealt_ == Dealt::kAllocated) sum += std::log(mean);
    }
    return sum;
  }

 private:
  Dealt dealt_;
  double noise_;
  bool secret_;
};

Bounds bounds_of(const Observed& observed, int64_t trials, uint64_t seed) {
  Sample sample;
  for (const World world : {World::kWithout, World::kWith}) {
    RandomStream stream(seed, world == World::kWith ? "with" : "without");
    auto& values = world == World::kWith ? sample.with : sample.without;
    for (int64_t i = 0; i < trials; ++i) values.push_back(observed(world, stream));
  }
  return lower_bounds(sample, kDelta, 0.05);
}

class Family : public ::testing::TestWithParam<Dealt> {};
class FamilySeeds : public Family {};

TEST_P(FamilySeeds, LandBetweenThirtyPercentAndTheTruth) {
  constexpr int seeds = 20;
  const double noise = noise_for(kEpsilon, GetParam());
  const Steps steps = steps_of(GetParam(), noise);
  int inside = 0, above = 0;
  double sum = 0;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    const Bounds bounds = bounds_of(Observed(GetParam(), noise), 3000, seed);
    const double found = epsilon_by_family({&steps, 1}, bounds.limits, kDelta);
    inside += found >= 0.3 * kEpsilon && found <= kEpsilon ? 1 : 0;
    above += found > kEpsilon ? 1 : 0;
    sum += found;
  }
  EXPECT_GE(inside, 19);
  EXPECT_LE(above, 1);
  RecordProperty("mean", std::to_string(sum / seeds));
}

TEST_P(Family, BatchesThatAreNoSecretAreFound) {
  const double noise = noise_for(kEpsilon, GetParam());
  const Steps steps = steps_of(GetParam(), noise);
  const Bounds bounds = bounds_of(Observed(GetParam(), noise, false), 3000, 1);
  EXPECT_GT(epsilon_by_family({&steps, 1}, bounds.limits, kDelta), 1.2 * kEpsilon);
}

TEST_P(Family, HalfOfTheNoiseIsFound) {
  const double noise = noise_for(kEpsilon, GetParam());
  const Steps steps = steps_of(GetParam(), noise);
  const Bounds bounds = bounds_of(Observed(GetParam(), noise / 2), 3000, 1);
  EXPECT_GT(epsilon_by_family({&steps, 1}, bounds.limits, kDelta), 1.2 * kEpsilon);
}

std::string name_of(const ::testing::TestParamInfo<Dealt>& test) {
  return test.param == Dealt::kPoisson ? "Poisson" : "Allocated";
}

INSTANTIATE_TEST_SUITE_P(Dealt, Family, ::testing::Values(Dealt::kPoisson, Dealt::kAllocated), name_of);
INSTANTIATE_TEST_SUITE_P(Dealt, FamilySeeds, ::testing::Values(Dealt::kPoisson, Dealt::kAllocated), name_of);

// Without sampling it is the Gaussian curve.
TEST(FamilyCurve, AgreesWithTheGaussianOne) {
  for (const double mu : {0.4, 1.5}) {
    const Steps steps{Step::gaussian(1.0, 1, Adjacency::kZeroOut), 1};
    for (const double rate : {0.02, 0.3}) {
      // The point of the curve of `mu` at this rate.
      const boost::math::normal_distribution<> normal;
      const ErrorRates limits{rate, boost::math::cdf(normal, -boost::math::quantile(normal, rate) - mu)};
      const double found = epsilon_by_family({&steps, 1}, limits, kDelta),
                   exact = privacy::gaussian_epsilon(mu, std::log(kDelta));
      EXPECT_LE(found, exact) << mu;
      EXPECT_GT(found, 0.98 * exact) << mu << " at " << rate;
    }
  }
}

TEST(FamilyCurve, ChanceExcludesNothing) {
  const Steps steps = steps_of(Dealt::kPoisson, 1);
  EXPECT_EQ(epsilon_by_family({&steps, 1}, {0.5, 0.5}, kDelta), 0);
  EXPECT_EQ(epsilon_by_family({&steps, 1}, {1, 0.1}, kDelta), 0);
  EXPECT_EQ(epsilon_by_family({&steps, 1}, {0.1, 1}, kDelta), 0);
}

// The shipped samplers and noise, every step of which is seen.
TEST(SecretBatches, AreAuditedFromEveryStep) {
  for (const char* name : {"poisson-steps", "allocated-steps"}) {
    for (const double epsilon : {2.0, 6.0}) {
      const Case subject = find_mechanism_audit(name).at(epsilon, kDelta);
      EXPECT_GT(subject.proven, 0.98 * epsilon) << name;
      const Outcome outcome = audit(subject, {.trials = 3000, .threads = available_threads()});
      EXPECT_EQ(outcome.verdict(), Verdict::kConsistent) << name << ": " << outcome.epsilon();
      EXPECT_GT(outcome.epsilon(), 0.3 * epsilon) << name;
      EXPECT_EQ(outcome.ground(), Ground::kFamily) << name;
    }
  }
}

}  // namespace
}  // namespace sotto::audit

// What must hold whatever the numbers: certificates against closed forms, order, round trips, refusals.
#include "../../support/expect_user_error.h"
#include "privacy/accounting/accountant.h"
#include "privacy/accounting/calibrate.h"
#include "privacy/accounting/gaussian.h"
#include "privacy/accounting/pld.h"
#include "privacy/accounting/proven.h"
#include "privacy/accounting/saddle.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace sotto::privacy {
namespace {

double epsilon_of(Method method, const Step& step, int64_t count, double delta) {
  const auto accountant = make_accountant(method);
  accountant->compose(step, count);
  return accountant->epsilon(delta);
}

double between(std::mt19937& random, double low, double high) {
  return std::exp(std::uniform_real_distribution<double>(std::log(low), std::log(high))(random));
}

TEST(Certificate, OfTheGaussianIsJustAboveTheClosedForm) {
  std::mt19937 random(1);
  for (int i = 0; i < 60; ++i) {
    const Steps steps{Step::gaussian(between(random, 0.05, 1e4)), 1 + static_cast<int64_t>(between(random, 1, 1e5))};
    const double delta = between(random, 1e-14, 0.1);
    const double mu = std::sqrt(static_cast<double>(steps.count)) / steps.step.noise_multiplier;
    const double exact = gaussian_epsilon(mu, std::log(delta));
    const double certified = pld_epsilon({&steps, 1}, delta);
    EXPECT_GE(certified, exact * (1 - 1e-14)) << mu << " " << delta;
    EXPECT_LE(certified, exact * 1.0002 + 1e-9) << mu << " " << delta;
  }
}

// Sampling at a rate of nearly 1 goes through the sampled pair, and must agree with not sampling.
TEST(Certificate, OfNearlyUnsampledStepsAgreesWithTheClosedForm) {
  for (const double z : {0.3, 1.0, 20.0}) {
    const double exact = gaussian_epsilon(std::sqrt(50.0) / z, std::log(1e-10));
    const double certified = epsilon_of(Method::kPld, Step::gaussian(z, 1 - 1e-12), 50, 1e-10);
    EXPECT_GE(certified, exact * (1 - 1e-9));
    EXPECT_LE(certified, exact * 1.0002);
  }
}

TEST(Certificate, IsAboveTheIntegralAndNear) {
  std::mt19937 random(2);
  for (int i = 0; i < 25; ++i) {
    const Adjacency adjacency = i % 3 == 0 ? Adjacency::kReplace : Adjacency::kAddRemove;
    const Step step = Step::gaussian(between(random, 0.7, 30), between(random, 3e-3, 0.9), adjacency);
    const auto count = static_cast<int64_t>(between(random, 20, 3000));
    const double delta = between(random, 1e-10, 1e-3);
    const double estimate = epsilon_of(Method::kSaddle, step, count, delta);
    const double certified = epsilon_of(Method::kPld, step, count, delta);
    EXPECT_GE(certified, estimate * (1 - 1e-8)) << step.noise_multiplier << " " << step.sampling_rate << " " << count;
    EXPECT_LE(certified, estimate * 1.001 + 1e-9) << step.noise_multiplier << " " << step.sampling_rate << " " << count;
    EXPECT_LE(certified, epsilon_of(Method::kRdp, step, count, delta) * 1.0001);
  }
}

TEST(Certificate, IsTheLargerOfBothDirections) {
  const Steps steps{Step::gaussian(1, 0.05), 200};
  const double remove = saddle_epsilon({&steps, 1}, Direction::kRemove, 1e-6);
  const double add = saddle_epsilon({&steps, 1}, Direction::kAdd, 1e-6);
  EXPECT_GT(std::abs(remove - add), 1e-3);
  EXPECT_GE(pld_epsilon({&steps, 1}, 1e-6), std::max(remove, add) * (1 - 1e-9));
}

TEST(Certificate, OfRepeatedPureStepsIsJustAboveTheBinomialSum) {
  for (const double epsilon : {0.01, 0.3, 2.0}) {
    const double exact = epsilon_of(Method::kExact, Step::pure(epsilon), 50, 1e-6);
    const double certified = epsilon_of(Method::kPld, Step::pure(epsilon), 50, 1e-6);
    EXPECT_GE(certified, exact * (1 - 1e-12));
    EXPECT_LE(certified, exact * 1.0002);
  }
}

TEST(Certificate, CountsRevealedMass) {
  const double delta = 1e-5;
  EXPECT_EQ(epsilon_of(Method::kPld, Step::approximate(0.1, 1e-6), 20, delta), std::numeric_limits<double>::infinity());
  const double with = epsilon_of(Method::kPld, Step::approximate(0.1, 1e-7), 20, delta);
  EXPECT_GE(with, epsilon_of(Method::kPld, Step::pure(0.1), 20, delta));
  EXPECT_GE(with, epsilon_of(Method::kExact, Step::approximate(0.1, 1e-7), 20, delta) * (1 - 1e-12));
}

TEST(Certificate, OfSampledLaplaceLiesBetweenItsNeighbours) {
  const double whole = epsilon_of(Method::kPld, Step::laplace(2), 50, 1e-6);
  const double add_remove = epsilon_of(Method::kPld, Step::laplace(2, 0.1), 50, 1e-6);
  const double replace = epsilon_of(Method::kPld, Step::laplace(2, 0.1, Adjacency::kReplace), 50, 1e-6);
  EXPECT_LT(add_remove, whole);
  EXPECT_LE(add_remove, replace * 1.0001);
  EXPECT_LT(replace, whole);
  EXPECT_LE(add_remove, epsilon_of(Method::kRdp, Step::laplace(2, 0.1), 50, 1e-6));
}

TEST(Epsilon, GrowsWithStepsAndRateAndFallsWithNoiseAndDelta) {
  for (const Method method : {Method::kPld, Method::kRdp, Method::kSaddle}) {
    const double base = epsilon_of(method, Step::gaussian(1, 0.02), 300, 1e-6);
    EXPECT_LT(base, epsilon_of(method, Step::gaussian(1, 0.02), 330, 1e-6));
    EXPECT_LT(base, epsilon_of(method, Step::gaussian(1, 0.022), 300, 1e-6));
    EXPECT_GT(base, epsilon_of(method, Step::gaussian(1.05, 0.02), 300, 1e-6));
    EXPECT_GT(base, epsilon_of(method, Step::gaussian(1, 0.02), 300, 2e-6));
  }
}

TEST(Delta, AtTheAnsweredEpsilonIsWithinTheTarget) {
  for (const Method method : {Method::kExact, Method::kPld, Method::kRdp, Method::kZcdp}) {
    const auto accountant = make_accountant(method);
    accountant->compose(Step::gaussian(3), 10);
    const double epsilon = accountant->epsilon(1e-6);
    EXPECT_LE(accountant->delta(epsilon * 1.0001), 1e-6 * 1.001) << to_text(method);
    EXPECT_GE(accountant->delta(epsilon * 0.99), 1e-6) << to_text(method);
  }
}

TEST(Calibrate, AnswersSpendAtMostTheTarget) {
  for (const Method method : {Method::kExact, Method::kPld, Method::kRdp, Method::kRdpPaper, Method::kZcdp,
                              Method::kAdvanced, Method::kBasic}) {
    const double z = calibrate({2, 1e-6, method}, Step::gaussian(1), 30);
    EXPECT_LE(epsilon_of(method, Step::gaussian(z), 30, 1e-6), 2) << to_text(method);
    EXPECT_GT(epsilon_of(method, Step::gaussian(z * 0.999), 30, 1e-6), 2) << to_text(method);
  }
  const double scale = calibrate({3, 1e-6, Method::kPld}, Step::laplace(1), 20);
  EXPECT_LE(epsilon_of(Method::kPld, Step::laplace(scale), 20, 1e-6), 3);
}

TEST(Calibrate, LeavesRoomForOtherEvents) {
  const Steps other{Step::pure(0.5), 1};
  const double alone = calibrate({1, 1e-5, Method::kPld}, Step::gaussian(1), 10);
  const double with = calibrate({1, 1e-5, Method::kPld}, Step::gaussian(1), 10, {&other, 1});
  EXPECT_GT(with, alone);
  EXPECT_USER_ERROR(calibrate({0.4, 1e-5, Method::kPld}, Step::gaussian(1), 10, {&other, 1}), "no amount of noise");
}

TEST(Proven, IsExactForGaussiansAndCertifiedForTheRest) {
  const std::vector<Steps> gaussians = {{Step::gaussian(4), 10}, {Step::gaussian(2), 3}};
  EXPECT_NEAR(proven_epsilon(gaussians, 1e-5), gaussian_epsilon(std::sqrt(10 / 16.0 + 3 / 4.0), std::log(1e-5)), 1e-12);
  const std::vector<Steps> mixed = {{Step::gaussian(4), 10}, {Step::laplace(5), 2}};
  const double first = proven_epsilon(mixed, 1e-5);
  EXPECT_EQ(proven_epsilon(mixed, 1e-5), first);
  EXPECT_LE(proven_delta(mixed, first * 1.001), 1e-5);
  EXPECT_EQ(proven_epsilon({}, 1e-5), 0);
}

// A grid as wide as these losses would take for ever.
TEST(Certificate, OfNoiseThatHidesNothingIsQuick) {
  for (const Steps& steps : {Steps{Step::gaussian(1), 1'000'000'000}, Steps{Step::gaussian(1e-6), 10}}) {
    const double mu = std::sqrt(static_cast<double>(steps.count)) / steps.step.noise_multiplier;
    EXPECT_NEAR(pld_epsilon({&steps, 1}, 1e-5) / gaussian_epsilon(mu, std::log(1e-5)), 1, 1e-9);
    EXPECT_NEAR(pld_log_delta({&steps, 1}, 10), 0, 1e-9);
  }
  const double plain = epsilon_of(Method::kExact, Step::gaussian(1e-3), 10, 1e-5);
  const double sampled = epsilon_of(Method::kPld, Step::gaussian(1e-3, 0.01), 10, 1e-5);
  EXPECT_GT(sampled, 0.9 * epsilon_of(Method::kExact, Step::gaussian(1e-3), 1, 1e-5));
  EXPECT_LE(sampled, plain * (1 + 1e-9));
  EXPECT_NEAR(epsilon_of(Method::kPld, Step::laplace(1e-6), 10, 1e-5), 1e7, 1e5);
  const std::vector<Steps> mixed = {{Step::gaussian(1e-4), 1}, {Step::laplace(2), 3}};
  EXPECT_GE(pld_epsilon(mixed, 1e-5), epsilon_of(Method::kExact, Step::gaussian(1e-4), 1, 1e-5));
  EXPECT_LE(pld_epsilon(mixed, 1e-5), epsilon_of(Method::kExact, Step::gaussian(1e-4), 1, 5e-6) + 1.5 + 1e-6);
}

TEST(Refusals, OfNumbersBeyondReasonComeAtOnce) {
  EXPECT_USER_ERROR(epsilon_of(Method::kExact, Step::gaussian(1e-9), 10, 1e-5), "hides nothing");
  EXPECT_USER_ERROR(epsilon_of(Method::kPld, Step::pure(1e300), 10, 1e-5), "hides nothing");
  EXPECT_USER_ERROR(epsilon_of(Method::kPld, Step::gaussian(1, 1e-300), 1000, 1e-5), "sampling rate must be at least");
  EXPECT_USER_ERROR(epsilon_of(Method::kSaddle, Step::gaussian(0.1, 0.01), 10000, 1e-5), "use pld");
  for (const double epsilon : {1e-300, 1e300}) {
    EXPECT_USER_ERROR(calibrate({epsilon, 1e-5, Method::kExact}, Step::gaussian(1), 10), "target epsilon");
  }
}

TEST(Refusals, NameTheReason) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const double z : {0.0, -1.0, nan, std::numeric_limits<double>::infinity()}) {
    EXPECT_USER_ERROR(epsilon_of(Method::kExact, Step::gaussian(z), 1, 1e-5), "noise multiplier");
  }
  for (const double q : {0.0, -0.1, 1.5, nan}) {
    EXPECT_USER_ERROR(epsilon_of(Method::kPld, Step::gaussian(1, q), 1, 1e-5), "sampling rate");
  }
  for (const double delta : {0.0, 1.0, -1.0, nan}) {
    EXPECT_USER_ERROR(epsilon_of(Method::kExact, Step::gaussian(1), 1, delta), "delta");
  }
  EXPECT_USER_ERROR(epsilon_of(Method::kExact, Step::gaussian(1), -1, 1e-5), "number of steps");
  EXPECT_USER_ERROR(make_accountant(Method::kExact)->delta(-1), "epsilon");
  EXPECT_USER_ERROR(epsilon_of(Method::kZcdp, Step::gaussian(1, 0.1), 2, 1e-5), "sampled");
  EXPECT_USER_ERROR(epsilon_of(Method::kClassical, Step::gaussian(1), 1, 1e-5), "up to 1");
  EXPECT_USER_ERROR(epsilon_of(Method::kClassical, Step::gaussian(20), 2, 1e-5), "single");
  EXPECT_USER_ERROR(epsilon_of(Method::kExact, Step::laplace(1), 2, 1e-5), "pld");
  EXPECT_USER_ERROR(method_from_text("pdl"), "rdp-paper");
  EXPECT_USER_ERROR(adjacency_from_text("swap"), "replace-same-label");
  const auto accountant = make_accountant(Method::kPld);
  accountant->compose(Step::gaussian(1, 0.1));
  EXPECT_USER_ERROR(accountant->compose(Step::gaussian(1, 0.1, Adjacency::kReplace)), "adjacency");
}

}  // namespace
}  // namespace sotto::privacy

// Random allocation: the certificate against quadrature, against simulations of the true pair, and against itself.
#include "privacy/accounting/allocation.h"

#include "../../support/expect_user_error.h"
#include "privacy/accounting/accountant.h"
#include "privacy/accounting/calibrate.h"
#include "privacy/accounting/exact.h"
#include "privacy/accounting/gaussian.h"
#include "privacy/accounting/normal.h"
#include "privacy/accounting/pld.h"
#include "privacy/accounting/proven.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace sotto::privacy {
namespace {

double epsilon_of(const std::vector<Steps>& steps, double delta, Method method = Method::kPld) {
  const auto accountant = make_accountant(method);
  for (const Steps& entry : steps) accountant->compose(entry.step, entry.count);
  return accountant->epsilon(delta);
}

double delta_of(const Step& step, int64_t count, Direction direction, double epsilon) {
  const Steps steps{step, count};
  return std::exp(pld_log_delta({&steps, 1}, direction, epsilon));
}

// δ(ε) of one step from its grid.
double delta_of(const LossGrid& grid, double epsilon) {
  double sum = grid.p_at_infinity;
  for (size_t i = 0; i < grid.mass.size(); ++i) {
    const double loss = static_cast<double>(grid.first + static_cast<int64_t>(i)) * grid.spacing;
    if (loss > epsilon) sum += grid.mass[i] * -std::expm1(epsilon - loss);
  }
  return sum;
}

// E(X - k)_+ of a lognormal X of mean 1.
double call(double mu, double k) {
  if (k <= 0) return 1 - k;
  const double d = std::log(k) / mu;
  return static_cast<double>(normal_tail(d - mu / 2) - k * normal_tail(d + mu / 2));
}

// δ of one epoch of two batches: the expectation over one X in closed form, over the other by the trapezoidal rule.
double delta_of_two(double mu, Direction direction, double epsilon) {
  const double step = 1e-3;
  double sum = 0;
  for (double y = -12; y <= 12; y += step) {
    const double x = std::exp(mu * y - mu * mu / 2);
    const double density = std::exp(-y * y / 2) / std::sqrt(2 * M_PI);
    // (1 - cR)_+ = (cR - 1)_+ + 1 - cR
    const double c = direction == Direction::kRemove ? std::exp(epsilon) : std::exp(-epsilon);
    const double above = call(mu, 2 * c - x) / 2;
    const double value = direction == Direction::kRemove ? above : (above - (1 + x) / 2 + c) / c;
    sum += density * value * step;
  }
  return sum;
}

struct Estimate {
  double mean = 0;
  double deviation = 0;  // of the mean
};

// δ of the true pair, with all coordinates of all epochs moved by the same amount towards the event, and weighted back.
Estimate simulated_delta(double z, int64_t batches, int64_t epochs, Direction direction, double epsilon, int samples) {
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal;
  const double mu = 1 / z;
  const double coordinates = static_cast<double>(batches * epochs);
  const double deviation = std::sqrt(static_cast<double>(epochs) * std::expm1(mu * mu) / static_cast<double>(batches));
  const double sign = direction == Direction::kRemove ? 1 : -1;
  const double shift = sign * (epsilon / deviation + sign * deviation / 2) / std::sqrt(coordinates);
  double sum = 0;
  double squares = 0;
  for (int i = 0; i < samples; ++i) {
    double log_ratio = 0;
    double total = 0;
    for (int64_t epoch = 0; epoch < epochs; ++epoch) {
      double ratio = 0;
      for (int64_t batch = 0; batch < batches; ++batch) {
        const double y = normal(random) + shift;
        total += y;
        ratio += std::exp(mu * y - mu * mu / 2);
      }
      log_ratio += std::log(ratio / static_cast<double>(batches));
    }
    const double weight = std::exp(-shift * total + coordinates * shift * shift / 2);
    const double value =
        direction == Direction::kRemove ? std::exp(log_ratio) - std::exp(epsilon) : 1 - std::exp(epsilon + log_ratio);
    const double term = std::max(0.0, value) * weight;
    sum += term;
    squares += term * term;
  }
  const double mean = sum / samples;
  return {mean, std::sqrt((squares / samples - mean * mean) / samples)};
}

TEST(Allocation, ToOneBatchIsThePlainGaussian) {
  EXPECT_EQ(Step::allocated(2, 1), Step::gaussian(2));
  for (const double z : {0.7, 4.0, 60.0}) {
    const double exact = gaussian_epsilon(std::sqrt(10) / z, std::log(1e-6));
    EXPECT_NEAR(epsilon_of({{Step::allocated(z, 1), 10}}, 1e-6), exact, 1e-4 * exact);
    EXPECT_NEAR(epsilon_of({{Step::allocated(z, 1), 10}}, 1e-6, Method::kExact), exact, 1e-12 * exact);
    // The law of an epoch of one batch, although nobody would ask for it.
    const LossGrid grid = allocated_grid(Step::allocated(z, 1), 0.003 / z, 1e-12);
    for (const double epsilon : {0.0, 0.5 / z, 2 / z}) {
      const double delta = std::exp(gaussian_log_delta(1 / z, epsilon));
      for (const double found : {delta_of(grid, epsilon), delta_of(grid.swapped(), epsilon)}) {
        EXPECT_GE(found, delta * (1 - 1e-12));
        EXPECT_LE(found, delta * 1.0002);
      }
    }
  }
}

TEST(Allocation, ToTwoBatchesAgreesWithQuadrature) {
  for (const double z : {0.4, 1.0, 3.0}) {
    for (const double epsilon : {0.01, 0.3, 1.0}) {
      for (const Direction direction : {Direction::kRemove, Direction::kAdd}) {
        const double truth = delta_of_two(1 / z, direction, epsilon);
        const double certified = delta_of(Step::allocated(z, 2), 1, direction, epsilon);
        EXPECT_GE(certified, truth * (1 - 1e-7)) << z << " " << epsilon;
        EXPECT_LE(certified, truth * 1.001 + 1e-9) << z << " " << epsilon;
      }
    }
  }
}

struct Plan {
  int64_t batches;
  int64_t epochs;
  int samples;
};
constexpr Plan kPlans[] = {{12, 10, 40'000}, {19, 60, 8'000}};

TEST(Allocation, IsAboveSimulationsOfTheTruePairAndNear) {
  for (const Plan& plan : kPlans) {
    const double z = calibrate({1, 1e-5, Method::kPld}, Step::allocated(1, plan.batches), plan.epochs);
    for (const Direction direction : {Direction::kRemove, Direction::kAdd}) {
      const Estimate truth = simulated_delta(z, plan.batches, plan.epochs, direction, 1, plan.samples);
      const double certified = delta_of(Step::allocated(z, plan.batches), plan.epochs, direction, 1);
      EXPECT_LT(truth.deviation, 0.03 * truth.mean);
      EXPECT_GE(certified, truth.mean - 3.5 * truth.deviation) << plan.batches;
      EXPECT_LE(certified, 1.02 * truth.mean + 3.5 * truth.deviation) << plan.batches;
    }
  }
}

// What an exact account could save at most: with a tiny part less noise the true pair is beyond the target.
TEST(Allocation, NeedsAThirdOfTheUnamplifiedNoiseAndNoMoreThanTheTruth) {
  for (const Plan& plan : kPlans) {
    const double z = calibrate({1, 1e-5, Method::kPld}, Step::allocated(1, plan.batches), plan.epochs);
    const double plain = std::sqrt(static_cast<double>(plan.epochs)) / gaussian_mu(1, 1e-5);
    EXPECT_GT(plain, 3 * z);
    const Estimate less = simulated_delta(0.98 * z, plan.batches, plan.epochs, Direction::kRemove, 1, plan.samples / 2);
    EXPECT_GT(less.mean - 3.5 * less.deviation, 1e-5) << z;
    EXPECT_LE(epsilon_of({{Step::allocated(z, plan.batches), plan.epochs}}, 1e-5), 1);
  }
}

TEST(Allocation, CostsLessWithMoreNoiseAndBatchesAndMoreWithEpochs) {
  const double base = epsilon_of({{Step::allocated(2, 12), 10}}, 1e-6);
  EXPECT_GT(base, epsilon_of({{Step::allocated(2.02, 12), 10}}, 1e-6));
  EXPECT_LT(base, epsilon_of({{Step::allocated(2, 12), 11}}, 1e-6));
  double last = epsilon_of({{Step::gaussian(2), 10}}, 1e-6);
  for (const int64_t batches : {2, 3, 7, 12, 13, 64, 1000}) {
    const double next = epsilon_of({{Step::allocated(2, batches), 10}}, 1e-6);
    EXPECT_LT(next, last) << batches;
    last = next;
  }
  EXPECT_LT(proven_epsilon(std::vector<Steps>{{Step::allocated(2, 12), 10}}, 1e-5), base);
}

TEST(Allocation, ComposesWithOtherSteps) {
  const Steps epochs{Step::allocated(3, 12, Adjacency::kZeroOut), 10};
  const Steps plain{Step::gaussian(5), 2};
  const double together = epsilon_of({epochs, plain}, 1e-6);
  EXPECT_GT(together, epsilon_of({epochs}, 1e-6));
  EXPECT_GT(together, epsilon_of({plain}, 1e-6));
  EXPECT_LT(together, epsilon_of({{Step::gaussian(3), 10}, plain}, 1e-6));
  EXPECT_LT(together, epsilon_of({epochs, {Step::gaussian(5), 3}}, 1e-6));
  // Half the epochs twice are all of them, and so are equal steps under another name.
  const Steps half{epochs.step, 5};
  EXPECT_EQ(epsilon_of({half, plain, half}, 1e-6), together);
  EXPECT_GT(epsilon_of({epochs, {Step::pure(0.1), 1}, {Step::gaussian(4, 0.1, Adjacency::kZeroOut), 20}}, 1e-6),
            epsilon_of({epochs}, 1e-6));
}

// A coarse law is a spread of a finer one on a grid that has all its points.
TEST(Allocation, FinerGridsNeverGiveMore) {
  for (const int64_t batches : {5, 12, 64}) {
    const Step step = Step::allocated(1.5, batches);
    double last[2] = {1, 1};
    for (const double spacing : {0.04, 0.02, 0.01, 0.005}) {
      const LossGrid grid = allocated_grid(step, spacing, 1e-13);
      const double found[2] = {delta_of(grid, 0.4), delta_of(grid.swapped(), 0.4)};
      for (int i = 0; i < 2; ++i) {
        EXPECT_LE(found[i], last[i] * (1 + 1e-9) + 1e-12) << batches << " " << spacing;
        last[i] = found[i];
      }
    }
  }
}

TEST(Allocation, GridsHoldAllProbabilityAndLittleMore) {
  for (const double z : {0.2, 1.0, 50.0, 1e5}) {
    for (const int64_t batches : {2, 19, 1000}) {
      const Step step = Step::allocated(z, batches);
      const LossGrid grid = allocated_grid(step, rough_allocated_spacing(step), 1e-12);
      const LossGrid swapped = grid.swapped();
      double p = grid.p_at_infinity;
      double q = grid.q_at_infinity;
      for (const double mass : grid.mass) p += mass;
      for (const double mass : swapped.mass) q += mass;
      EXPECT_GE(p, 1 - 1e-15);
      EXPECT_LE(p, 1 + 1e-8);
      EXPECT_GE(q, 1 - 1e-15);
      EXPECT_LE(q, 1 + 1e-8);
      EXPECT_LE(grid.p_at_infinity, 1e-12);
      EXPECT_LE(grid.q_at_infinity, 1e-12);
    }
  }
}

TEST(Allocation, AnswersAtExtremes) {
  EXPECT_LT(epsilon_of({{Step::allocated(2, 10'000), 1000}}, 1e-9), 1);
  const double loud = epsilon_of({{Step::allocated(0.02, 10), 2}}, 1e-6);
  EXPECT_LE(loud, epsilon_of({{Step::gaussian(0.02), 2}}, 1e-6, Method::kExact));
  const auto accountant = make_accountant(Method::kPld);
  accountant->compose(Step::allocated(5, 20), 10);
  EXPECT_LT(accountant->log_delta(8), -200);
  EXPECT_GT(accountant->log_delta(0), -5);
}

TEST(Allocation, CalibratesAlsoBesideOtherEvents) {
  const Steps other{Step::gaussian(6), 1};
  const double alone = calibrate({1, 1e-5, Method::kPld}, Step::allocated(1, 12), 10);
  const double with = calibrate({1, 1e-5, Method::kPld}, Step::allocated(1, 12), 10, {&other, 1});
  EXPECT_GT(with, alone);
  EXPECT_LE(epsilon_of({{Step::allocated(with, 12), 10}, other}, 1e-5), 1);
}

TEST(Allocation, RefusesWhatItDoesNotCover) {
  const auto valid = [](const Step& step) {
    const Steps steps{step, 1};
    require_valid({&steps, 1});
  };
  EXPECT_USER_ERROR(valid(Step::allocated(1, 0)), "number of batches");
  EXPECT_USER_ERROR(valid(Step::allocated(1, -3)), "number of batches");
  EXPECT_USER_ERROR(valid(Step::allocated(1, 2'000'000)), "number of batches");
  EXPECT_USER_ERROR(valid(Step::allocated(0, 5)), "noise multiplier");
  EXPECT_USER_ERROR(valid(Step::allocated(std::numeric_limits<double>::quiet_NaN(), 5)), "noise multiplier");
  Step step = Step::allocated(1, 5);
  step.sampling_rate = 0.5;
  EXPECT_USER_ERROR(valid(step), "not both");
  step = Step::laplace(1);
  step.batches = 5;
  EXPECT_USER_ERROR(valid(step), "gaussian noise only");
  EXPECT_USER_ERROR(epsilon_of({{Step::allocated(1, 5), 1}, {Step::gaussian(1, 0.1, Adjacency::kZeroOut), 1}}, 1e-5),
                    "state one adjacency");
  for (const Method method : all_methods()) {
    if (method == Method::kPld) continue;
    EXPECT_USER_ERROR(epsilon_of({{Step::allocated(4, 5), 1}}, 1e-5, method), "use");
  }
  const Steps steps{Step::allocated(4, 5), 1};
  EXPECT_EQ(default_method({&steps, 1}), Method::kPld);
  EXPECT_NE(why_not_exact({&steps, 1}), "");
}

// δ(ε) of two batches of which one holds our record, +½ or -½ in units of Δ, by quadrature over both sums.
double replaced_delta(double z, double epsilon) {
  const double step = z / 60;
  const auto density = [&](double x, double y, double own) {
    const auto normal = [&](double value) { return std::exp(-value * value / (2 * z * z)); };
    return (normal(x - own) * normal(y) + normal(x) * normal(y - own)) / (4 * M_PI * z * z);
  };
  double sum = 0;
  for (double x = -9 * z - 1; x < 9 * z + 1; x += step) {
    for (double y = -9 * z - 1; y < 9 * z + 1; y += step) {
      sum += std::max(0.0, density(x, y, 0.5) - std::exp(epsilon) * density(x, y, -0.5)) * step * step;
    }
  }
  return sum;
}

TEST(AllocationUnderReplace, IsNotBelowTheTruth) {
  for (const double z : {0.6, 1.5}) {
    const Steps epoch{Step::allocated(z, 2, Adjacency::kReplace), 1};
    for (const double epsilon : {0.2, 1.0, 2.5}) {
      EXPECT_GE(proven_delta({&epoch, 1}, epsilon), replaced_delta(z, epsilon) * (1 - 1e-3)) << z << ' ' << epsilon;
    }
  }
}

TEST(AllocationUnderReplace, IsWorthAFactorOfThree) {
  const double plain = std::sqrt(10) / gaussian_mu(1, 1e-5);
  const double z = calibrate({1, 1e-5, Method::kPld}, Step::allocated(1, 12, Adjacency::kReplace), 10);
  EXPECT_LT(z, plain / 3);
  const Steps run{Step::allocated(z, 12, Adjacency::kReplace), 10};
  const double spent = proven_epsilon({&run, 1}, 1e-5);
  EXPECT_LE(spent, 1);
  EXPECT_GT(spent, 0.995);
  EXPECT_LE(proven_delta({&run, 1}, spent), 1e-5 * (1 + 1e-3));
  // By way of none, it is two halves.
  const Steps half{Step::allocated(2 * z, 12, Adjacency::kZeroOut), 10};
  EXPECT_GT(proven_epsilon({&half, 1}, 1e-5), 0.4);
  EXPECT_LT(proven_epsilon({&half, 1}, 1e-5), 0.5);
}

TEST(AllocationUnderReplace, CountsInPublicBesideOtherMechanisms) {
  const std::vector<Steps> mixed = {{Step::allocated(4, 12, Adjacency::kReplace), 10}, {Step::laplace(20), 1}};
  const std::vector<Steps> known = {{Step::gaussian(4), 10}, {Step::laplace(20), 1}};
  EXPECT_NEAR(proven_epsilon(mixed, 1e-5), proven_epsilon(known, 1e-5), 1e-9);
  const std::vector<Steps> gaussians = {{Step::allocated(4, 12, Adjacency::kReplace), 10}, {Step::gaussian(30), 1}};
  EXPECT_LT(proven_epsilon(gaussians, 1e-5), proven_epsilon(known, 1e-5) / 2);
}

}  // namespace
}  // namespace sotto::privacy

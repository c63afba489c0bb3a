#include <gtest/gtest.h>
#include <sotto/accounting.h>

#include <cmath>

namespace sotto {
namespace {

TEST(LibraryAccounting, AgreesWithTheGaussiansClosedForm) {
  // Φ(1/2z - εz) - e^ε Φ(-1/2z - εz), z = 1.
  const auto phi = [](double x) { return std::erfc(-x / std::sqrt(2.0)) / 2; };
  const double epsilon = epsilon_of({{.noise_multiplier = 1.0}}, 1e-5);
  EXPECT_NEAR(phi(0.5 - epsilon) - std::exp(epsilon) * phi(-0.5 - epsilon), 1e-5, 1e-9);
  EXPECT_NEAR(delta_of({{.noise_multiplier = 1.0}}, epsilon), 1e-5, 1e-9);
}

TEST(LibraryAccounting, CountsSampledStepsAndOthersTogether) {
  const Steps training{.noise_multiplier = 1.0, .sampling_rate = 0.01, .count = 1000};
  const Steps histogram{.mechanism = Mechanism::kLaplace, .noise_multiplier = 10};
  const double alone = epsilon_of({training}, 1e-5);
  const double both = epsilon_of({training, histogram}, 1e-5);
  EXPECT_GT(both, alone);
  EXPECT_LT(both, alone + 0.1 + 1e-3);  // the histogram costs 1/10 at most
  EXPECT_LE(alone, epsilon_of({training}, 1e-5, "rdp"));
}

TEST(LibraryAccounting, CalibratesToTheBudget) {
  const Steps shape{.batches = 12, .adjacency = Adjacency::kZeroOut, .count = 10};
  const double multiplier = calibrate(1.0, 1e-5, shape);
  Steps noisy = shape;
  noisy.noise_multiplier = multiplier;
  EXPECT_LE(epsilon_of({noisy}, 1e-5), 1.0);
  noisy.noise_multiplier = multiplier * 0.98;
  EXPECT_GT(epsilon_of({noisy}, 1e-5), 1.0);
}

TEST(LibraryAccounting, RefusesWhatMeansNothing) {
  EXPECT_THROW(epsilon_of({}, 1e-5), Error);
  EXPECT_THROW(epsilon_of({{.noise_multiplier = -1}}, 1e-5), Error);
  EXPECT_THROW(epsilon_of({{.noise_multiplier = 1}}, 0), Error);
  EXPECT_THROW(epsilon_of({{.noise_multiplier = 1}}, 1e-5, "magic"), Error);
  EXPECT_THROW(delta_of({{.noise_multiplier = 1}}, -1), Error);
  EXPECT_THROW(calibrate(0, 1e-5, {}), Error);
}

}  // namespace
}  // namespace sotto

// Attacks on noise made of floating-point numbers: they break the textbook mechanism and gain nothing here.
//
// Two inputs, 0 and 1, noise of stddev 1. Telling them apart by the size of the output is what the privacy budget
// pays for; these attacks look only at what arithmetic leaves behind.
#include "goodness.h"
#include "privacy/noise/gaussian.h"

#include <ATen/ATen.h>

#include <boost/math/special_functions/erf.hpp>
#include <gtest/gtest.h>

#include <bit>

namespace sotto::privacy {
namespace {

constexpr size_t kDraws = 200000;
constexpr double kStddev = 0.9;

std::vector<float> ours(float input, uint64_t round) {
  std::vector<float> values(kDraws, input);
  NoiseSource source = NoiseSource::replay(12, "distinguisher", round, 0);
  add_gaussian(std::span(values), make_grid(kStddev, 22), source);
  return values;
}

// x + libtorch's own normal numbers (Box–Muller in single precision).
std::vector<float> textbook(float input, uint64_t seed) {
  at::Generator generator = at::detail::createCPUGenerator(seed);
  const at::Tensor noisy = at::randn({static_cast<int64_t>(kDraws)}, generator) * kStddev + input;
  return {noisy.data_ptr<float>(), noisy.data_ptr<float>() + kDraws};
}

// --- Reachable outputs (Mironov): which outputs can occur at all depends on the input.
// --------------------------------

// Noise by inversion of a 24-bit uniform.
float inverted(uint32_t k) {
  const double u = (static_cast<double>(k) + 0.5) * 0x1p-24;
  return static_cast<float>(-std::sqrt(2.0) * boost::math::erfc_inv(2 * u)) * static_cast<float>(kStddev);
}

bool inversion_reaches(float output, float input) {
  const double u = normal_cdf((static_cast<double>(output) - input) / kStddev);
  const auto nearest = static_cast<int64_t>(u * 0x1p24);
  for (int64_t k = std::max<int64_t>(nearest - 3, 0); k <= std::min<int64_t>(nearest + 3, (1 << 24) - 1); ++k) {
    if (input + inverted(static_cast<uint32_t>(k)) == output) return true;
  }
  return false;
}

// Whether some noise takes `input` to `output` under our mechanism: fl(step·(q + Y)) for an integer Y near the
// quotient.
bool grid_reaches(float output, float input) {
  const NoiseGrid grid = make_grid(kStddev, 22);
  const double quantised = std::nearbyint(input * (1 / grid.step));
  const double nearest = std::nearbyint(output / grid.step) - quantised;
  for (double noise = nearest - 2; noise <= nearest + 2; ++noise) {
    if (static_cast<float>((quantised + noise) * grid.step) == output) return true;
  }
  return false;
}

template <typename Reaches>
double fraction_reachable_from_0(const std::vector<float>& outputs, const Reaches& reaches) {
  double hits = 0;
  for (const float y : outputs) hits += reaches(y, 0.0F) ? 1 : 0;
  return hits / static_cast<double>(outputs.size());
}

TEST(ReachableOutputs, BetrayTheInputOfTextbookNoise) {
  NoiseSource source = NoiseSource::replay(12, "inversion", 0, 0);
  std::vector<float> from_0(20000), from_1(20000);
  for (float& y : from_0) y = inverted(static_cast<uint32_t>(source.bits() >> 40));
  for (float& y : from_1) y = 1.0F + inverted(static_cast<uint32_t>(source.bits() >> 40));
  EXPECT_EQ(fraction_reachable_from_0(from_0, inversion_reaches), 1.0);
  EXPECT_LT(fraction_reachable_from_0(from_1, inversion_reaches), 0.7);
}

TEST(ReachableOutputs, AreTheSameForEveryInputHere) {
  for (const float input : {0.0F, 1.0F, 0.1234567F}) {
    EXPECT_EQ(fraction_reachable_from_0(ours(input, 1), grid_reaches), 1.0) << input;
  }
}

// --- Precision (Haney et al., Casacuberta et al.): a sum is rounded to the input's own precision.
// ---------------------

// Adding 1 leaves no bits below 2^-24; small noise alone has them.
double fraction_finer_than_1(const std::vector<float>& outputs) {
  double finer = 0;
  for (const float y : outputs) finer += std::ldexp(y, 24) != std::nearbyint(std::ldexp(y, 24)) ? 1 : 0;
  return finer / static_cast<double>(outputs.size());
}

TEST(Precision, BetraysTheInputOfTextbookNoise) {
  EXPECT_GT(fraction_finer_than_1(textbook(0.0F, 1)), 0.2);
  EXPECT_EQ(fraction_finer_than_1(textbook(1.0F, 2)), 0.0);
}

// The test "is it finer than 2^-24?" on outputs of the same size, where the noise itself says nothing.
std::map<uint64_t, double> fineness_of_small(const std::vector<float>& outputs) {
  std::map<uint64_t, double> cells;
  for (const float y : outputs) {
    if (std::abs(y) < 0.25F) cells[std::ldexp(y, 24) != std::nearbyint(std::ldexp(y, 24)) ? 1 : 0] += 1;
  }
  return cells;
}

TEST(Precision, SaysNothingHere) {
  EXPECT_LT(same_law_p(fineness_of_small(textbook(0.0F, 1)), fineness_of_small(textbook(1.0F, 2))), kRefuted);
  EXPECT_GT(same_law_p(fineness_of_small(ours(0.0F, 1)), fineness_of_small(ours(1.0F, 2))), kPlausible);
}

// --- Trailing bits of the published floats, by binade.
// ----------------------------------------------------------------

std::map<uint64_t, double> trailing_bits(const std::vector<float>& outputs, float low, float high) {
  std::map<uint64_t, double> cells;
  for (const float y : outputs) {
    if (y >= low && y < high) cells[std::bit_cast<uint32_t>(y) % 16] += 1;
  }
  return cells;
}

TEST(TrailingBits, BetrayTheInputOfTextbookNoise) {
  EXPECT_LT(
      same_law_p(trailing_bits(textbook(0.0F, 1), 0.125F, 0.25F), trailing_bits(textbook(1.0F, 2), 0.125F, 0.25F)),
      kRefuted);
}

TEST(TrailingBits, SayNothingHere) {
  for (const float low : {0.03125F, 0.0625F, 0.125F, 0.25F, 0.5F, 1.0F}) {
    EXPECT_GT(same_law_p(trailing_bits(ours(0.0F, 1), low, 2 * low), trailing_bits(ours(1.0F, 2), low, 2 * low)),
              kPlausible)
        << low;
  }
}

}  // namespace
}  // namespace sotto::privacy

#include "privacy/noise/gaussian_table.h"

#include <boost/multiprecision/cpp_bin_float.hpp>
#include <gtest/gtest.h>

#include <vector>

namespace sotto::privacy {
namespace {

using Real = boost::multiprecision::number<boost::multiprecision::cpp_bin_float<50>>;

// P(round(N(0, s²)) = k)·2^(1+m) in units where the core's boxes are 2^-16, from the error function.
Real cell(uint64_t distance, int log2_scale) {
  const Real root2 = sqrt(Real(2));
  const Real low = ldexp(Real(distance) - 0.5, -log2_scale) / root2;
  const Real high = ldexp(Real(distance) + 0.5, -log2_scale) / root2;
  const Real mass = (boost::math::erfc(low) - boost::math::erfc(high)) / 2;
  return ldexp(mass, log2_scale - GaussianTable::kLog2IntervalsPerScale + 1);
}

TEST(GaussianTable, BoxesAreTheCore) {
  const GaussianTable& table = GaussianTable::get();
  std::vector<double> stacked(GaussianTable::kIntervals + 1);
  for (const uint8_t interval : table.box) stacked[interval] += 1;
  for (int i = 0; i < GaussianTable::kRest; ++i) EXPECT_EQ(table.interval[i].core * 0x1p16, stacked[i]) << i;
  for (int i = GaussianTable::kRest; i < GaussianTable::kIntervals; ++i) EXPECT_EQ(table.interval[i].core, 0.0) << i;
  EXPECT_LT(stacked[GaussianTable::kRest] * 0x1p-16, 0.01);  // speed: the rest is slow
}

TEST(GaussianTable, ColumnsHoldExactlyTheWeights) {
  const GaussianTable& table = GaussianTable::get();
  constexpr uint64_t kCapacity = uint64_t{1} << GaussianTable::kColumnBits;
  std::vector<uint64_t> held(GaussianTable::kIntervals);
  uint64_t total = 0;
  for (int i = 0; i < GaussianTable::kIntervals; ++i) {
    ASSERT_LE(table.column[i].threshold, kCapacity);
    held[i] += table.column[i].threshold;
    held.at(table.column[i].alias) += kCapacity - table.column[i].threshold;
    total += table.weight[i];
  }
  for (int i = 0; i < GaussianTable::kIntervals; ++i) EXPECT_EQ(held[i], table.weight[i]) << i;
  EXPECT_EQ(total, uint64_t{1} << 62);
}

TEST(GaussianTable, LawLiesBetweenCoreAndProposalOnEveryScale) {
  const GaussianTable& table = GaussianTable::get();
  EXPECT_EQ(table.envelope * 0x1p30, std::floor(table.envelope * 0x1p30));
  for (const int log2_scale : {20, 31, 44}) {
    const int position_bits = log2_scale - GaussianTable::kLog2IntervalsPerScale;
    for (uint64_t i = 0; i < GaussianTable::kIntervals; i += log2_scale == 20 ? 1 : 9) {
      const GaussianTable::Interval& row = table.interval[i];
      const Real proposal = ldexp(Real(table.envelope) * Real(table.weight[i]), -62);
      EXPECT_LE(Real(row.core), cell((i + 1) << position_bits, log2_scale)) << i;
      EXPECT_LE(cell(i << position_bits, log2_scale) - Real(row.core), proposal) << i;
    }
  }
}

TEST(GaussianTable, StopsWhereNothingIsLeft) {
  EXPECT_LT(boost::math::erfc(Real(16) / sqrt(Real(2))), ldexp(Real(1), -188));
}

}  // namespace
}  // namespace sotto::privacy

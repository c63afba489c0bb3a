#include "privacy/noise/gaussian_rest.h"

#include "privacy/noise/gaussian_block.h"
#include "privacy/noise/gaussian_table.h"
#include "privacy/noise/uniform.h"

#include <boost/multiprecision/cpp_bin_float.hpp>
#include <gtest/gtest.h>

namespace sotto::privacy {
namespace {

using Real = boost::multiprecision::number<boost::multiprecision::cpp_bin_float<80>>;

struct Place {
  int log2_scale;
  uint16_t interval;
  uint64_t distance;
};

// Both ends and a random inner point of a few intervals, near the centre, in the bulk, and far out.
std::vector<Place> places(std::initializer_list<int> intervals) {
  NoiseSource source = NoiseSource::replay(5, "places", 0, 0);
  std::vector<Place> all;
  for (const int log2_scale : {20, 26, 44}) {
    const uint64_t width = uint64_t{1} << (log2_scale - GaussianTable::kLog2IntervalsPerScale);
    for (const int i : intervals) {
      for (const uint64_t offset : {uint64_t{0}, width, uniform_below(width, source)}) {
        all.push_back({log2_scale, static_cast<uint16_t>(i), static_cast<uint64_t>(i) * width + offset});
      }
    }
  }
  return all;
}

// The sampler's own acceptance probability: how many of the 2^192 uniforms it accepts, by bisection of its decision.
Real acceptance(const Place& place) {
  std::array<uint64_t, 3> u{};
  for (uint64_t& word : u) {
    for (int bit = 63; bit >= 0; --bit) {
      word |= uint64_t{1} << bit;
      const Candidate candidate = {place.log2_scale, place.interval, place.distance, u[0]};
      if (!decide_exactly(candidate, u[1], u[2])) word &= ~(uint64_t{1} << bit);
    }
  }
  return ldexp(Real(u[0]), -64) + ldexp(Real(u[1]), -128) + ldexp(Real(u[2]), -192);
}

// From the definition: the normal mass of the cell around k.
Real ideal(const Place& place) {
  const Real root2 = sqrt(Real(2));
  const Real low = ldexp(Real(place.distance) - 0.5, -place.log2_scale) / root2;
  const Real high = ldexp(Real(place.distance) + 0.5, -place.log2_scale) / root2;
  return ldexp((boost::math::erfc(low) - boost::math::erfc(high)) / 2, place.log2_scale - 5);
}

// core + acceptance·proposal is what the sampler gives to an integer, up to one common factor 1 ± 2^-180: the two
// together are the law itself. Any slip in table, series or comparison shows here.
TEST(GaussianRest, SamplerGivesEveryIntegerItsProbability) {
  const GaussianTable& table = GaussianTable::get();
  for (const Place& place : places({0, 1, 40, 64, 150, 233, 254, 255, 256, 400, 640})) {
    const GaussianTable::Interval& row = table.interval[place.interval];
    const Real proposal = ldexp(Real(table.envelope) * Real(table.weight[place.interval]), -62);
    const Real given = Real(row.core) + acceptance(place) * proposal;
    const Real wanted = ideal(place);
    EXPECT_LE(abs(given - wanted), ldexp(wanted, -148) + ldexp(proposal, -190))
        << "scale 2^" << place.log2_scale << ", distance " << place.distance;
  }
  EXPECT_GE(kGaussianTotalVariation, 0x1p-147);
}

TEST(GaussianRest, QuickDecisionsAreNeverWrong) {
  size_t sure = 0, unsure = 0;
  for (const Place& place : places({0, 1, 7, 64, 150, 233, 254, 255, 300, 500, 900, 1023})) {
    uint64_t edge = 0;  // the last 64-bit uniform that is accepted
    for (int bit = 63; bit >= 0; --bit) {
      edge |= uint64_t{1} << bit;
      if (!decide_exactly({place.log2_scale, place.interval, place.distance, edge}, 0, 0))
        edge &= ~(uint64_t{1} << bit);
    }
    for (int bit = 0; bit < 64; ++bit) {
      for (const uint64_t uniform : {edge + (uint64_t{1} << bit), edge - (uint64_t{1} << bit)}) {
        const Candidate candidate = {place.log2_scale, place.interval, place.distance, uniform};
        const Verdict verdict = decide_quickly(candidate);
        ++(verdict == Verdict::unsure ? unsure : sure);
        if (verdict == Verdict::accept) {
          EXPECT_TRUE(decide_exactly(candidate, ~uint64_t{0}, ~uint64_t{0}));
        }
        if (verdict == Verdict::reject) {
          EXPECT_FALSE(decide_exactly(candidate, 0, 0));
        }
      }
    }
  }
  EXPECT_GT(sure, 1000u);
  EXPECT_GT(unsure, 1000u);
}

TEST(GaussianRest, ExactDecisionsAreRare) {
  NoiseSource source = NoiseSource::replay(5, "rare", 0, 0);
  const GaussianTable& table = GaussianTable::get();
  int unsure = 0;
  for (int i = 0; i < 200000; ++i) {
    const auto interval = static_cast<uint16_t>(uniform_below(250, source));
    const uint64_t distance = (uint64_t{interval} << 16) + uniform_below(1 << 16, source);
    ASSERT_LT(interval, table.interval.size());
    unsure += decide_quickly({22, interval, distance, source.bits()}) == Verdict::unsure ? 1 : 0;
  }
  EXPECT_LT(unsure, 40);
}

}  // namespace
}  // namespace sotto::privacy

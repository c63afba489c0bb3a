// The rare decision that double precision cannot take.
#include "privacy/noise/gaussian_rest.h"
#include "privacy/noise/gaussian_table.h"

#include <boost/multiprecision/cpp_bin_float.hpp>

namespace sotto::privacy {
namespace {

using Real =
    boost::multiprecision::number<boost::multiprecision::cpp_bin_float<256, boost::multiprecision::digit_base_2>>;

// p(k)·s/32 = φ(x)/32·Σ_n He_2n(x)/((2n+1)!·(2s)^2n): Taylor's series of φ integrated over a cell of width 1/s. With
// s ≥ 2^20 and x ≤ 16 the first term left out, n = 4, is below 2^-150 of the sum.
Real cell_probability(uint64_t distance, int log2_scale) {
  const Real x = ldexp(Real(distance), -log2_scale);
  const Real x2 = x * x;
  const Real h = ldexp(Real(1), -2 * log2_scale - 2);
  const Real he2 = x2 - 1;
  const Real he4 = (x2 - 6) * x2 + 3;
  const Real he6 = ((x2 - 15) * x2 + 45) * x2 - 15;
  const Real series = 1 + h * (he2 / 6 + h * (he4 / 120 + h * he6 / 5040));
  static const Real norm = 1 / (32 * sqrt(2 * boost::math::constants::pi<Real>()));
  return norm * exp(-x2 / 2) * series;
}

}  // namespace

bool decide_exactly(const Candidate& candidate, uint64_t second, uint64_t third) {
  const GaussianTable& table = GaussianTable::get();
  const GaussianTable::Interval& row = table.interval[candidate.interval];
  const Real lower = ldexp(Real(second), -64) + ldexp(Real(third) + 0.5, -128);
  const Real uniform = ldexp(Real(candidate.uniform) + lower, -64);
  const Real proposal = ldexp(Real(table.envelope) * Real(table.weight[candidate.interval]), -62);
  return uniform * proposal < cell_probability(candidate.distance, candidate.log2_scale) - Real(row.core);
}

}  // namespace sotto::privacy

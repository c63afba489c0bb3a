#include "privacy/noise/gaussian_rest.h"

#include "privacy/noise/gaussian_table.h"

namespace sotto::privacy {

Magnitude draw_from_rest(int log2_scale, NoiseSource& source) {
  const GaussianTable& table = GaussianTable::get();
  const int position_bits = log2_scale - GaussianTable::kLog2IntervalsPerScale;
  while (true) {
    const uint64_t word = source.bits();  // 10 bits of column, 52 within it, 1 of sign
    const uint64_t within = word >> 2 & ((uint64_t{1} << GaussianTable::kColumnBits) - 1);
    auto interval = static_cast<uint16_t>(word >> 54);
    if (within >= table.interval[interval].threshold) interval = table.interval[interval].alias;
    const uint64_t negative = word & 1;
    const uint64_t position = source.bits() >> (64 - position_bits);
    const uint64_t distance = (uint64_t{interval} << position_bits) + position + negative;

    const Candidate candidate = {log2_scale, interval, distance, source.bits()};
    Verdict verdict = decide_quickly(candidate);
    if (verdict == Verdict::unsure) {
      const uint64_t second = source.bits();
      verdict = decide_exactly(candidate, second, source.bits()) ? Verdict::accept : Verdict::reject;
    }
    if (verdict == Verdict::accept) return {interval, negative == 1, position};
  }
}

// φ(c + t) = φ(c)·e^y with y = -t(c + t/2). |t| ≤ 1/128 and c < 16, so |y| < 0.1255 and the fifth-order polynomial is
// within 2^-27.3 of e^y; the midpoint rule and rounding add less than 2^-36. The tolerance is twice that and more.
Verdict decide_quickly(const Candidate& candidate) {
  const GaussianTable::Interval& row = GaussianTable::get().interval[candidate.interval];
  const double t =
      static_cast<double>(candidate.distance) / static_cast<double>(uint64_t{1} << candidate.log2_scale) - row.centre;
  const double y = -t * (row.centre + t / 2);
  const double exp_y = 1 + y * (1 + y * (1.0 / 2 + y * (1.0 / 6 + y * (1.0 / 24 + y * (1.0 / 120)))));
  const double density = row.centre_density * exp_y;
  const double used = row.core + static_cast<double>(candidate.uniform) * 0x1p-64 * row.proposal;
  const double tolerance = density * 0x1p-26 + (row.core + row.proposal) * 0x1p-48;
  if (density - used > tolerance) return Verdict::accept;
  if (used - density > tolerance) return Verdict::reject;
  return Verdict::unsure;
}

}  // namespace sotto::privacy

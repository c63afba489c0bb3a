#include "privacy/noise/gaussian_rest.h"

#include "privacy/noise/gaussian_table.h"

#include <openssl/crypto.h>

#include <bit>
#include <cmath>

namespace sotto::privacy {
namespace {

double power_of_half(int exponent) {
  return std::bit_cast<double>(static_cast<uint64_t>(1023 - exponent) << 52);
}

struct Opinion {
  bool accept;
  bool sure;
};

// φ(c + t) = φ(c)·e^y with y = -t(c + t/2). |t| ≤ 1/128 and c < 16, so |y| < 0.1255 and the fifth-order polynomial is
// within 2^-27.3 of e^y; the midpoint rule adds less than 2^-36, rounding and the bits of U beyond 53 less than 2^-49
// of the sums. The tolerance is twice that and more.
inline Opinion opinion(const Candidate& candidate, const GaussianTable::Interval& row) {
  const double x = static_cast<double>(static_cast<int64_t>(candidate.distance)) * power_of_half(candidate.log2_scale);
  const double uniform = static_cast<double>(static_cast<int64_t>(candidate.uniform >> 11)) * 0x1p-53;
  const double t = x - row.centre;
  const double y = -t * (row.centre + t / 2);
  const double exp_y = 1 + y * (1 + y * (1.0 / 2 + y * (1.0 / 6 + y * (1.0 / 24 + y * (1.0 / 120)))));
  const double density = row.centre_density * exp_y;
  const double excess = density - (row.core + uniform * row.proposal);
  const double tolerance = density * 0x1p-26 + (row.core + row.proposal) * 0x1p-48;
  return {std::bit_cast<uint64_t>(excess) >> 63 == 0, std::abs(excess) > tolerance};
}

// a if the condition holds, else b, without a jump that the processor would have to guess.
inline uint64_t choose(bool condition, uint64_t a, uint64_t b) {
  return b ^ ((a ^ b) & -uint64_t{condition});
}

}  // namespace

Verdict decide_quickly(const Candidate& candidate) {
  const auto [accept, sure] = opinion(candidate, GaussianTable::get().interval[candidate.interval]);
  if (!sure) return Verdict::unsure;
  return accept ? Verdict::accept : Verdict::reject;
}

RestSampler::~RestSampler() {
  OPENSSL_cleanse(accepted_.data(), sizeof accepted_);
}

void RestSampler::refill(int log2_scale, NoiseSource& source) {
  const GaussianTable& table = GaussianTable::get();
  const int position_bits = log2_scale - GaussianTable::kLog2IntervalsPerScale;
  log2_scale_ = log2_scale;
  std::array<uint64_t, 3 * kBatch> random;
  size_t accepted = 0;
  while (accepted == 0) {
    source.words(random);
    for (size_t i = 0; i < random.size(); i += 3) {
      const uint64_t word = random[i];  // 10 bits of column, 52 within it, 1 of sign
      const uint64_t own = word >> 54;
      const uint64_t within = word >> 2 & ((uint64_t{1} << GaussianTable::kColumnBits) - 1);
      const GaussianTable::Column column = table.column[own];
      const auto interval = static_cast<uint16_t>(choose(within < column.threshold, own, column.alias));
      const uint64_t negative = word & 1;
      const uint64_t position = random[i + 1] >> (64 - position_bits);
      const uint64_t distance = (uint64_t{interval} << position_bits) + position + negative;

      const Candidate candidate = {log2_scale, interval, distance, random[i + 2]};
      auto [accept, sure] = opinion(candidate, table.interval[interval]);
      if (!sure) [[unlikely]] {
        const uint64_t second = source.bits();
        accept = decide_exactly(candidate, second, source.bits());
      }
      accepted_[accepted] = {interval, negative == 1, position};
      accepted += uint64_t{accept};
    }
  }
  waiting_ = accepted;
  OPENSSL_cleanse(random.data(), sizeof random);
}

}  // namespace sotto::privacy

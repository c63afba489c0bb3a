// Draws from the part of the Gaussian that the core leaves over (see gaussian_table.h).
//
// A proposal is accepted if U·proposal < φ(x)/32·(1 + …) - core for a uniform U. It is decided first on 64 bits of U in
// double precision, whose error is bounded; a decision within that bound is taken again with 128 more bits of U and
// 256-bit arithmetic. What is left undecided then is settled wrongly with probability below 2^-140.
#pragma once

#include "privacy/noise/noise_source.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace sotto::privacy {

inline constexpr int kMinLog2Scale = 20;
inline constexpr int kMaxLog2Scale = 44;

struct Magnitude {
  uint16_t interval;
  bool negative;      // Y = -1-j rather than j
  uint64_t position;  // j - interval·2^m
};

// Proposes in batches without branching on the outcome, and keeps what was accepted until it is asked for.
class RestSampler {
 public:
  ~RestSampler();

  Magnitude draw(int log2_scale, NoiseSource& source) {
    if (waiting_ == 0 || log2_scale != log2_scale_) refill(log2_scale, source);
    return accepted_[--waiting_];
  }

 private:
  static constexpr size_t kBatch = 64;
  void refill(int log2_scale, NoiseSource& source);

  int log2_scale_ = 0;
  size_t waiting_ = 0;
  std::array<Magnitude, kBatch + 1> accepted_;
};

// One decision about |Y| = `distance` in `interval`, with the leading 64 bits of U.
struct Candidate {
  int log2_scale;
  uint16_t interval;
  uint64_t distance;
  uint64_t uniform;
};

enum class Verdict { accept, reject, unsure };
Verdict decide_quickly(const Candidate& candidate);

// The same with 192 bits of U: `uniform`, then `second`, then `third`.
bool decide_exactly(const Candidate& candidate, uint64_t second, uint64_t third);

}  // namespace sotto::privacy

// A block of integers Y = round(N(0, 4^log2_scale)), kept as random words and intervals until they are used.
//
// Each Y is within 2^-140 of that law in total variation, given ideal random bits. Proof. Let c be the core's mass and
// write the law as p = core + rest (gaussian_table.h). The core and the proposals are drawn by integer arithmetic on
// random bits and exact. A proposal's acceptance probability is off by at most 2^-192 (bits of U) plus what the cell
// probability is off, 2^-150 of p(Y) (gaussian_exact.cc; a quick decision is taken only where it agrees). So the
// unnormalised rest is off by 2^-149 in sum. Cutting at 16 s loses τ < 2^-188. The rest is drawn whenever the core is
// not, that is with probability exactly 1-c, while it should have mass 1-c-τ: normalising it moves at most as much
// again. Altogether the law moves by less than 2^-147. ∎
//
// Within 16 s every probability is also right to a relative 2^-60. Proof. p(Y)·2^(1+m) is at least φ(16)/32 > 2^-192 there,
// and what is proposed for Y at most (p(Y)·2^(1+m))(1 + 2^-20) + 2^-62·M. So an acceptance probability that is off by
// 2^-192 moves p(Y) by a relative 2^-192·2^-62·M/2^-192 < 2^-62 or by 2^-191; the cell's probability by 2^-150, and
// normalising by 2^-139. ∎
#pragma once

#include "privacy/noise/gaussian_rest.h"
#include "privacy/noise/kernels.h"
#include "privacy/noise/noise_source.h"

#include <array>
#include <cstdint>
#include <span>

namespace sotto::privacy {

inline constexpr double kGaussianTotalVariation = 0x1p-140;
inline constexpr double kGaussianRelativeError = 0x1p-60;
inline constexpr double kGaussianCut = 16;  // standard deviations: what lies beyond is never drawn

class GaussianBlock {
 public:
  static constexpr size_t kCapacity = 2048;  // fits the first-level cache

  explicit GaussianBlock(const NoiseKernels& kernels = noise_kernels()) : kernels_(kernels) {}
  ~GaussianBlock();
  GaussianBlock(const GaussianBlock&) = delete;
  GaussianBlock& operator=(const GaussianBlock&) = delete;

  // Draws `count` ≤ kCapacity new integers; log2_scale in [kMinLog2Scale, kMaxLog2Scale].
  void draw(size_t count, int log2_scale, NoiseSource& source);

  // The integers drawn last, plain or added to values (see AddParameters) of the same count.
  void copy_to(std::span<int64_t> out) const;
  void add_to(std::span<float> values, double grid, double inverse) const;
  void add_to(std::span<double> values, double grid, double inverse) const;

 private:
  const NoiseKernels& kernels_;
  RestSampler rest_sampler_;
  size_t count_ = 0;
  int position_bits_ = 0;
  alignas(32) std::array<uint64_t, kCapacity> words_;
  alignas(32) std::array<uint16_t, kCapacity> intervals_;
  std::array<uint16_t, kCapacity> rest_;
};

}  // namespace sotto::privacy

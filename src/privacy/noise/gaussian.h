// Gaussian noise on a grid (see grid.h): values become step·(round(x/step) + round(N(0, (stddev/step)²))).
//
// Rounding is to nearest, ties to even. The time taken depends on the noise drawn, not on the values. A value that is
// NaN, infinite or beyond grid.largest_value() is a UserError, found before any noise is drawn for the values handed
// over; they are then unchanged.
#pragma once

#include "privacy/noise/grid.h"
#include "privacy/noise/noise_source.h"

#include <cstdint>
#include <span>

namespace sotto::privacy {

// Noise for one release, in chunks that threads may take in any order: chunk c covers values c·kChunk …
// (c+1)·kChunk-1 and has its own random stream, so that the result does not depend on how chunks are shared out. A
// chunk must be used once only.
class GaussianNoise {
 public:
  static constexpr size_t kChunk = size_t{1} << 20;

  GaussianNoise(const NoiseGrid& grid, NoiseSource& source);

  // At most kChunk values.
  void add_to_chunk(uint64_t chunk, std::span<float> values) const;
  void add_to_chunk(uint64_t chunk, std::span<double> values) const;

 private:
  NoiseGrid grid_;
  StreamFamily streams_;
};

// The whole release on this thread: the same result as chunk by chunk.
GridNoise add_gaussian(std::span<float> values, const NoiseGrid& grid, NoiseSource& source);
GridNoise add_gaussian(std::span<double> values, const NoiseGrid& grid, NoiseSource& source);

// The same on gaussian_grid(stddev, sensitivity, values.size()).
GridNoise add_gaussian(std::span<float> values, double stddev, double sensitivity, NoiseSource& source);
GridNoise add_gaussian(std::span<double> values, double stddev, double sensitivity, NoiseSource& source);

// What is said of `count` values with noise on this grid.
GridNoise describe_gaussian(const NoiseGrid& grid, size_t count);

// The noise itself: integers round(N(0, 4^log2_scale)), log2_scale in [20, 44].
void gaussian_integers(std::span<int64_t> out, int log2_scale, NoiseSource& source);

}  // namespace sotto::privacy

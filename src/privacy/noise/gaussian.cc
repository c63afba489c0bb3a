#include "privacy/noise/gaussian.h"

#include "base/error.h"
#include "privacy/noise/gaussian_block.h"
#include "privacy/noise/value_check.h"

#include <algorithm>
#include <cmath>

namespace sotto::privacy {
namespace {

template <typename Value, typename Use>
void for_each_part(std::span<Value> values, size_t part, const Use& use) {
  for (size_t number = 0; !values.empty(); ++number) {
    const size_t size = std::min(part, values.size());
    use(number, values.first(size));
    values = values.subspan(size);
  }
}

template <typename Value>
void add_checked(std::span<Value> values, const NoiseGrid& grid, NoiseSource source) {
  GaussianBlock block;
  for_each_part(values, GaussianBlock::kCapacity, [&](size_t, std::span<Value> part) {
    block.draw(part.size(), grid.log2_scale, source);
    block.add_to(part, grid.step, 1 / grid.step);
  });
}

template <typename Value>
GridNoise add_whole(std::span<Value> values, const NoiseGrid& grid, NoiseSource& source) {
  require_on_grid(values, grid);
  const StreamFamily streams = source.family();
  for_each_part(values, GaussianNoise::kChunk,
                [&](size_t chunk, std::span<Value> part) { add_checked(part, grid, streams.stream(chunk)); });
  return describe_gaussian(grid, values.size());
}

}  // namespace

GaussianNoise::GaussianNoise(const NoiseGrid& grid, NoiseSource& source)
    : grid_(make_grid(grid.noise_scale(), grid.log2_scale)), streams_(source.family()) {}

void GaussianNoise::add_to_chunk(uint64_t chunk, std::span<float> values) const {
  SOTTO_INVARIANT(values.size() <= kChunk);
  require_on_grid(values, grid_);
  add_checked(values, grid_, streams_.stream(chunk));
}

void GaussianNoise::add_to_chunk(uint64_t chunk, std::span<double> values) const {
  SOTTO_INVARIANT(values.size() <= kChunk);
  require_on_grid(values, grid_);
  add_checked(values, grid_, streams_.stream(chunk));
}

GridNoise add_gaussian(std::span<float> values, const NoiseGrid& grid, NoiseSource& source) {
  return add_whole(values, grid, source);
}

GridNoise add_gaussian(std::span<double> values, const NoiseGrid& grid, NoiseSource& source) {
  return add_whole(values, grid, source);
}

GridNoise add_gaussian(std::span<float> values, double stddev, double sensitivity, NoiseSource& source) {
  return add_whole(values, gaussian_grid(stddev, sensitivity, values.size()), source);
}

GridNoise add_gaussian(std::span<double> values, double stddev, double sensitivity, NoiseSource& source) {
  return add_whole(values, gaussian_grid(stddev, sensitivity, values.size()), source);
}

GridNoise describe_gaussian(const NoiseGrid& grid, size_t count) {
  return {grid.step, std::ldexp(1.0, grid.log2_scale), static_cast<double>(count) * kGaussianTotalVariation};
}

void gaussian_integers(std::span<int64_t> out, int log2_scale, NoiseSource& source) {
  GaussianBlock block;
  for_each_part(out, GaussianBlock::kCapacity, [&](size_t, std::span<int64_t> part) {
    block.draw(part.size(), log2_scale, source);
    block.copy_to(part);
  });
}

}  // namespace sotto::privacy

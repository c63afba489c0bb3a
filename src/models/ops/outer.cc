#include "models/ops/outer.h"

#include "models/ops/kernels.h"
#include "models/ops/scratch.h"

#include <algorithm>

namespace sotto::models::ops {
namespace {

// Columns of `a` that lie together while a tile runs over the sequence: rows further apart would share cache sets.
constexpr int64_t kBlock = 48;

// [length, width] → blocks of `block` columns, each [length, block]; missing columns are zero.
void pack_columns(const float* from, int64_t length, int64_t width, int64_t block, float* to) {
  for (int64_t first = 0; first < width; first += block) {
    const int64_t columns = std::min(block, width - first);
    for (int64_t t = 0; t < length; ++t, to += block) {
      std::copy_n(from + t * width + first, columns, to);
      std::fill(to + columns, to + block, 0.0f);
    }
  }
}

}  // namespace

int64_t outer_floats(const OuterShape& s) {
  return s.in * round_up(s.out, kPanel);
}

double store_outer(const OuterShape& s, const float* a, const float* g, float* stored) {
  float* blocks = scratch(Scratch::kImages, s.length * round_up(s.in, kBlock));
  float* panels = scratch(Scratch::kPixels, s.length * round_up(s.out, kPanel));
  pack_columns(a, s.length, s.in, kBlock, blocks);
  pack_columns(g, s.length, s.out, kPanel, panels);
  static_assert(sizeof(float*) == 2 * sizeof(float));
  auto** rows = reinterpret_cast<const float**>(scratch(Scratch::kPatches, 2 * s.length));
  double square = 0.0;
  for (int64_t first = 0; first < s.in; first += kBlock) {
    for (int64_t t = 0; t < s.length; ++t) rows[t] = blocks + first * s.length + t * kBlock;
    const int64_t columns = std::min(kBlock, s.in - first);
    for (int64_t panel = 0; panel * kPanel < s.out; ++panel)
      square += kernels().store_weights(rows, s.length, {1, columns, 0}, panels + panel * s.length * kPanel, kPanel, 1,
                                        stored + (panel * s.in + first) * kPanel);
  }
  return square;
}

void add_outer(const OuterShape& s, const float* stored, float* weight) {
  for (int64_t out = 0; out < s.out; ++out) {
    const float* column = stored + out / kPanel * s.in * kPanel + out % kPanel;
    for (int64_t in = 0; in < s.in; ++in) weight[out * s.in + in] += column[in * kPanel];
  }
}

}  // namespace sotto::models::ops

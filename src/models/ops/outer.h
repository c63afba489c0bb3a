// Σ_t g_t a_tᵀ of one example, kept: the weight gradient of a linear layer over a sequence.
//
// A general matrix product writes its result several times when sequences are short; here every tile stays in registers
// over the whole sequence, is stored once, and its squared norm is taken on the way.
#pragma once

#include <cstdint>

namespace sotto::models::ops {

// a [length, in], g [length, out].
struct OuterShape {
  int64_t length, in, out;
};

// Floats of a stored sum: panels of kernels.h, with zeros where `out` does not fill the last.
int64_t outer_floats(const OuterShape& shape);

// The squared norm is as exact as Kernels::store_weights'.
double store_outer(const OuterShape& shape, const float* a, const float* g, float* stored);

// weight [out, in] += stored.
void add_outer(const OuterShape& shape, const float* stored, float* weight);

}  // namespace sotto::models::ops

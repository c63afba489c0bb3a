// Working memory that each thread keeps between calls, so that a training step allocates nothing for it.
#pragma once

#include <cstdint>

namespace sotto::models::ops {

enum class Scratch { kImages, kPatches, kPixels, kBias, kWeights, kTransposedWeights, kGradients, kCount };

// At least `floats` floats, aligned for vectors, of unspecified content; valid until this thread asks for the same use
// again.
float* scratch(Scratch use, int64_t floats);

}  // namespace sotto::models::ops

// Shadow models: federations of one client that train as the target does, same method and noise, on random halves of
// records of known membership. They are trained in parallel, by several processes if there are such, and kept beside the
// run.
#pragma once

#include "attacks/target.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>

namespace sotto::attacks {

struct ShadowOptions {
  int64_t shadows = 50;
  uint64_t seed = 1;
  int threads = 1;
  std::filesystem::path cache = {};  // a file; empty: nothing is kept
};

struct Shadows {
  at::Tensor logits;  // [shadows, records, classes]
  at::Tensor held;    // bool [shadows, records]: which records each was trained on
};

// `setup` says how to train. A cache of other settings or records is not used.
Shadows train_shadows(const federation::Setup& setup, const data::Records& records, const ShadowOptions& options);

}  // namespace sotto::attacks

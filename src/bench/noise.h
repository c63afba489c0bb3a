// Secure noise against libtorch's normal numbers. One core, buffers warm, the two sides in turn: adding secure noise to
// values where they lie, and writing normal numbers into a tensor of the same size.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstdint>

namespace sotto::bench {

struct NoiseOptions {
  int64_t values = 11'200'000;  // a ResNet-18
  int64_t repeats = 25;
};

// values; secure_per_s, torch_randn_per_s and their ratio, as medians; best_secure_per_s, best_torch_randn_per_s. Sets
// the process's intra-op threads to one.
nlohmann::json measure_noise(const NoiseOptions& options);

}  // namespace sotto::bench

// What VPP adds to making prototypes and DCR to fine-tuning, on a ViT-tiny with adapters.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstdint>

namespace sotto::bench {

struct VpdrOptions {
  int64_t batch = 256;
  int64_t patch = 8;  // pixels, of 32
  int repeats = 5;    // of each stage; short ones are run more often
};

// prototypes_ms, vpp_extra_ms, vpp_scores_ms, vpp_overhead; fine_tuning_ms, dcr_extra_ms, dcr_overhead.
nlohmann::json measure_vpdr(const VpdrOptions& options);

}  // namespace sotto::bench

// A private step (per-example clipping, noise, update) against a plain step of the same model.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <string>

namespace sotto::bench {

struct DpsgdOptions {
  std::string model = "cnn";  // cnn, mlp, vit or resnet18
  int64_t lora = 0;           // rank of low-rank paths, which are then trained with the head; 0 = the whole model
  int64_t batch = 0;          // records per step; 0 = 256, 1024, 64 or 32, by model
  int64_t slots = 0;          // records per pass of a private step; 0 = chosen
  double seconds = 10.0;      // about how long to measure
  int threads = 1;            // intra-op
};

// What was measured (model, trained parameters, lora, batch, threads); plain_ms, private_ms and their ratio; plain_peak_mb,
// private_peak_mb and their memory_ratio. Sets the process's intra-op threads.
nlohmann::json measure_dpsgd(const DpsgdOptions& options);

}  // namespace sotto::bench

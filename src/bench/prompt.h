// What a private step on prompts costs, in plain steps: bounded at text features and at prompts. Times are processor
// time.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <string>

namespace sotto::bench {

struct PromptOptions {
  std::string encoder = "resnet50-minilm";  // or tiny, or the file of a CLIP model
  int64_t classes = 10;
  int64_t batch = 32;
  int64_t length = 16;  // vectors of a prompt
  int64_t rank = 8;     // of the local prompt's factors
  int64_t repeats = 7;
  int threads = 1;  // intra-op
};

// What was measured (encoder, classes, batch, length, rank, threads); plain_ms, text_features_ms, prompt_ms; and, in
// plain steps, text_features_ratio and prompt_ratio. Sets the process's intra-op threads.
nlohmann::json measure_prompt(const PromptOptions& options);

}  // namespace sotto::bench

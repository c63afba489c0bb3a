// What a config says of how prompts are learnt, and what follows from it alone.
#pragma once

#include "methods/prompts/prompt_learner.h"
#include "privacy/dpsgd/noisy_descent.h"
#include "settings/section.h"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace sotto::methods {

// What the global prompt starts as.
enum class PromptStart {
  kWords,  // "a photo of a …"
  kRandom  // small random numbers
};
constexpr auto choices(PromptStart) {
  return std::to_array<settings::Choice<PromptStart>>(
      {{PromptStart::kWords, "words"}, {PromptStart::kRandom, "random"}});
}

// What gradients are taken by when they are bounded.
enum class ClipAt { kTextFeatures, kPrompt };
constexpr auto choices(ClipAt) {
  return std::to_array<settings::Choice<ClipAt>>(
      {{ClipAt::kTextFeatures, "text-features"}, {ClipAt::kPrompt, "prompt"}});
}

struct PromptOptions {
  std::string encoder = "resnet50-minilm";
  std::string image_features = "resnet50";  // what data.features must be for this encoder
  int64_t length = 16;                      // b, vectors of a prompt
  PromptStart start = PromptStart::kWords;  // as printed: kRandom
  double clip = 10.0;                       // C_th
  ClipAt clip_at = ClipAt::kTextFeatures;
  double global_lr = 0;  // 0: federation.lr
  privacy::Sampling sampling = privacy::Sampling::kDisjoint;
  int64_t steps = 0;  // of a client in a round, each on a batch of its own; 0: one for every batch. As printed: 1
  bool in_the_clear = false;  // no noise, whatever [privacy] says: what a table compares with
  PromptShape shape = {};
};

// Keys encoder, length, start, clip, clip_at, global_lr, batches, steps and in_the_clear, which all members have.
PromptOptions read_prompt_options(settings::Section& section);

using PromptReader = PromptOptions (*)(settings::Section&);

// The learner of a run, e.g. to measure its steps.
PromptLearner make_prompt_learner(const PromptOptions& options, const std::vector<std::string>& class_names,
                                  int64_t record_width);
// The global prompt that a run starts from.
at::Tensor first_global_prompt(const PromptOptions& options, const PromptLearner& learner, uint64_t seed);

}  // namespace sotto::methods

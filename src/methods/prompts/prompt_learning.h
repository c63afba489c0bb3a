// Clients that learn soft prompts for a frozen vision–language model: DP-FPL and what it is compared with.
//
// Members differ in what a client has besides the global prompt. They share where gradients are bounded, who adds the
// noise, and what it costs:
//
//   no [privacy], in_the_clear    clients send their global prompts as they are.
//   observer = "server"           noise at the client, in every step; the server sees releases alone.
//   observer = "clients", "public"  the server is trusted with the global prompt's clipped gradients and adds noise to
//                                 their sum; the local prompt gets its noise at the client. A prompt's user sees both.
//   variant = "paper"             as printed: batch gradients clipped, u, v and p_G each charged as if alone.
#pragma once

#include "methods/method.h"
#include "methods/prompts/prompt_learner.h"
#include "privacy/dpsgd/noisy_descent.h"

#include <string>

namespace sotto::methods {

struct PromptOptions {
  std::string encoder = "resnet50-minilm";
  int64_t length = 16;          // b, vectors of a prompt
  bool start_as_words = true;   // the global prompt starts as "a photo of a …", otherwise as small random numbers
  double clip = 10.0;           // C_th
  bool clip_at_prompt = false;  // bound gradients by the prompts, not by the text features
  double global_lr = 0;         // 0: federation.lr
  privacy::Sampling sampling = privacy::Sampling::kDisjoint;
  bool in_the_clear = false;  // no noise, whatever [privacy] says: what a table compares with
  PromptShape shape = {};
};

// Keys encoder, length, start, clip, clip_at, global_lr, batches and in_the_clear, which all members have.
PromptOptions read_prompt_options(settings::Section& section);

using PromptReader = PromptOptions (*)(settings::Section&);

// A catalogue entry of the family.
MethodEntry prompt_learning(std::string name, std::string what, std::string citation, PromptReader read);

// The learner of a run, e.g. to measure its steps.
PromptLearner make_prompt_learner(const PromptOptions& options, const std::vector<std::string>& class_names,
                                  int64_t record_width);
// The global prompt that a run starts from.
at::Tensor first_global_prompt(const PromptOptions& options, const PromptLearner& learner, uint64_t seed);

}  // namespace sotto::methods

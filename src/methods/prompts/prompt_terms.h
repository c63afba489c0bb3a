// What holds for every client of a run that learns prompts.
#pragma once

#include "methods/context.h"
#include "methods/prompts/prompt_options.h"
#include "privacy/neighbours.h"

#include <string>

namespace sotto::methods {

// Who adds the noise.
enum class PromptNoise { kNobody, kClients, kServerToo };

struct PromptTerms {
  PromptOptions options;
  PromptNoise noise = PromptNoise::kNobody;
  bool as_printed = false;
  privacy::Neighbours neighbours = {};
  double global_lr = 0;
  bool everyone = false;  // every client takes part in every round

  bool trusts_server() const { return noise == PromptNoise::kServerToo; }
};

// A UserError for settings that no promise can be kept under.
PromptTerms prompt_terms(const PublicContext& context);

PromptLearner learner_of(const PublicContext& context, const PromptTerms& terms);

// What releases and tensors are called.
namespace prompt_names {
inline constexpr const char* kPrompts = "prompts";                 // what a client releases, local and global
inline constexpr const char* kLocalPrompt = "local prompt";        // what it releases where the server is trusted
inline constexpr const char* kGlobalGradient = "global gradient";  // what it hands to a trusted server
inline constexpr const char* kGlobalPrompt = "global prompt";      // what that server releases
inline constexpr const char* kGlobal = "global";                   // the global prompt as a tensor
}  // namespace prompt_names

// One tensor under its name.
NamedTensors named_alone(const std::string& name, const at::Tensor& value);
// A copy of the global prompt, as it travels.
NamedTensors global_values(const at::Tensor& global);

}  // namespace sotto::methods

#include "methods/prompts/dp_fpl.h"

#include "methods/prompts/prompt_learning.h"

namespace sotto::methods {
namespace {

PromptOptions read_dp_fpl(settings::Section& section) {
  PromptOptions o = read_prompt_options(section);
  o.shape.rank = section.integer("rank", o.shape.rank, settings::kNonNegative);
  o.shape.residual = section.boolean("residual", o.shape.residual);
  o.shape.cut = section.boolean("cut", o.shape.cut);
  if (o.shape.cut && !o.shape.residual) {
    section.fail("cut", "drops what is left of p_L, and residual = false does not use it: set one of them");
  }
  o.shape.local = o.shape.rank == 0 ? LocalPrompt::kWhole : LocalPrompt::kFactored;
  return o;
}

PromptOptions read_promptfl(settings::Section& section) {
  return read_prompt_options(section);
}

PromptOptions read_fedotp(settings::Section& section) {
  PromptOptions o = read_prompt_options(section);
  TransportOptions& transport = o.shape.transport;
  o.shape.local = LocalPrompt::kAligned;
  transport.entropy = section.number("entropy", transport.entropy, settings::kPositive);
  transport.mass = section.number("mass", transport.mass, {.low = 0.0, .high = 1.0, .low_excluded = true});
  transport.iterations = section.integer("iterations", transport.iterations, settings::at_least(1));
  transport.threshold = section.number("threshold", transport.threshold, settings::kPositive);
  return o;
}

PromptOptions read_fedpgp(settings::Section& section) {
  PromptOptions o = read_prompt_options(section);
  o.shape.local = LocalPrompt::kFactors;
  o.shape.rank = section.integer("rank", o.shape.rank, settings::at_least(1));
  o.shape.contrast = section.number("contrast", 1.0, settings::kNonNegative);
  o.shape.contrast_temperature =
      section.number("contrast_temperature", o.shape.contrast_temperature, settings::kPositive);
  return o;
}

}  // namespace

MethodEntry dp_fpl() {
  return prompt_learning("dp-fpl", "prompts: a global one, and a local one that moves by noisy low-rank factors",
                         "Tran et al., ICLR 2025", read_dp_fpl);
}

MethodEntry promptfl() {
  return prompt_learning("promptfl", "one prompt for everyone", "Guo et al., IEEE TMC 2023", read_promptfl);
}

MethodEntry fedotp() {
  return prompt_learning("fedotp", "a global and a local prompt, joined by optimal transport to an image's patches",
                         "Li et al., CVPR 2024", read_fedotp);
}

MethodEntry fedpgp() {
  return prompt_learning("fedpgp", "a global prompt plus a trained low-rank one, with a contrastive term",
                         "Cui et al., ICML 2024", read_fedpgp);
}

}  // namespace sotto::methods

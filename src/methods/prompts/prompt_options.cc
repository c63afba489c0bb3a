#include "methods/prompts/prompt_options.h"

#include <ATen/ATen.h>

namespace sotto::methods {

PromptOptions read_prompt_options(settings::Section& section) {
  PromptOptions o;
  const std::string usual = o.encoder;
  o.encoder = section.text("encoder", usual);
  if (o.encoder != usual) o.image_features = o.encoder;
  o.length = section.integer("length", o.length, settings::between(1, 64));
  const bool printed = section.resolved().value("variant", "sound") == "paper";
  o.start = section.choice("start", printed ? PromptStart::kRandom : o.start);
  o.clip = section.number("clip", o.clip, settings::kPositive);
  o.clip_at = section.choice("clip_at", o.clip_at);
  o.global_lr = section.number("global_lr", o.global_lr, settings::kNonNegative);
  if (section.one_of("batches", "disjoint", {"disjoint", "poisson"}) == "poisson") {
    o.sampling = privacy::Sampling::kPoisson;
  }
  // Nobody else has the key unless the config says it: runs from before it keep their hashes.
  if (printed || section.has("steps")) {
    o.steps = section.integer("steps", printed ? 1 : o.steps, settings::between(0, 1e6));
  }
  o.in_the_clear = section.boolean("in_the_clear", o.in_the_clear);
  return o;
}

PromptLearner make_prompt_learner(const PromptOptions& options, const std::vector<std::string>& class_names,
                                  int64_t record_width) {
  return PromptLearner(options.shape,
                       models::PromptedClasses(models::open_vision_language(options.encoder, record_width), class_names,
                                               options.length));
}

at::Tensor first_global_prompt(const PromptOptions& options, const PromptLearner& learner, uint64_t seed) {
  if (options.start == PromptStart::kWords) return learner.classes().photo_prompt();
  RandomStream stream(seed, "first-global-prompt");
  return at::empty({options.length, learner.classes().model().word_width()})
      .normal_(0.0, 0.02, stream.torch_generator());
}

}  // namespace sotto::methods

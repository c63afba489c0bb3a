// One client's prompts, the graph of one step through the text tower, and gradients in both places where they are
// bounded.
#pragma once

#include "base/random.h"
#include "methods/prompts/prompt_math.h"
#include "models/vision_language/vision_language.h"

#include <optional>

namespace sotto::methods {

// What a client has besides the global prompt p_G.
enum class LocalPrompt {
  kNone,      // nothing: p_G is the prompt
  kWhole,     // p_G + p_L
  kFactored,  // p_G + p_L; steps on p_L have rank k, from factors that are made anew for every step
  kFactors,   // p_G + u·v; the factors are what is trained
  kAligned    // p_G and p_L are two prompts, joined by transport to an image's patches
};

struct PromptShape {
  LocalPrompt local = LocalPrompt::kNone;
  int64_t rank = 8;      // kFactored, kFactors
  bool residual = true;  // kFactored: p_G + u·v + r, which is p_G + p_L; otherwise p_G + u·v is the prompt
  bool cut = false;      // kFactored: p_L becomes what rank k can hold of it at every step
  double contrast = 0;   // weight of FedPGP's term
  double contrast_temperature = 0.5;
  TransportOptions transport = {};  // kAligned
};

class PromptLearner {
 public:
  PromptLearner(PromptShape shape, models::PromptedClasses classes);

  const models::PromptedClasses& classes() const { return classes_; }
  bool has_local() const { return shape_.local != LocalPrompt::kNone; }

  // The local tensors that a client starts with: small random numbers.
  NamedTensors first_local(RandomStream& stream) const;
  // Sets the prompts; without local tensors there is the global prompt alone.
  void set(const at::Tensor& global, const NamedTensors& local);
  const at::Tensor& global() const { return global_; }
  NamedTensors local() const { return clone(local_); }

  // The prompts as they are used, [J, b, w]: one, or two that transport joins.
  at::Tensor prompts() const;

  // What a step computes of a batch: image features [n, m, d] and labels.
  struct Evidence {
    at::Tensor losses;  // [n]
    at::Tensor errors;  // [n, C]: gradient of a record's loss by its logits, over the temperature
    at::Tensor images;  // [n, d]; kAligned: [n, J·C·d], the gradients themselves, and then no errors

    double loss() const;  // sum over the records
  };
  // Starts a step: factors p_L (`start` is public randomness) and sends the prompts through the text tower.
  void begin_step(RandomStream& start);
  Evidence evidence(const at::Tensor& images, const at::Tensor& labels) const;

  // How many numbers a record's gradient has by the text features, and by the prompts.
  int64_t feature_coordinates() const;
  int64_t prompt_coordinates(bool local, bool global) const;

  // Names and shapes of what is trained, the global prompt last.
  NamedTensors parameter_shapes() const;

  // Σ over the batch of gradients by the text features, [·] of feature_coordinates() → by what is trained.
  NamedTensors pull_back(const at::Tensor& by_features) const;
  // Each record's own: one pass through the text tower for each, so that none depends on the others. Tensors [n, …].
  NamedTensors pull_back_each(const Evidence& evidence) const;
  // Gradients of terms that know of no record.
  NamedTensors public_terms() const;
  static at::Tensor sum_of(const Evidence& evidence);

  // Steps of descent; absent tensors stay.
  void descend(const NamedTensors& gradients, double lr, double global_lr);

 private:
  at::Tensor trained_prompts() const;  // [J', b, w]
  // Those of this step; outside of steps, always the same ones of the same p_L.
  Factors factors() const;
  at::Tensor leaf_gradient(const at::Tensor& by_text) const;
  NamedTensors by_parameters(const at::Tensor& by_prompts) const;  // [J', b, w]

  PromptShape shape_;
  models::PromptedClasses classes_;
  at::Tensor start_text_;  // [C, d], for the contrastive term
  at::Tensor global_;
  NamedTensors local_;  // "local", or "u" and "v"
  Factors factors_;
  at::Tensor leaf_;  // the prompts of this step
  at::Tensor text_;  // and their text features, with the graph between them
};

}  // namespace sotto::methods

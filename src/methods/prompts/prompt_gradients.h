// How what a client's batch says of the prompts is bounded and noised, and what that costs.
//
//   sound      every record's gradient is bounded, taken by the text features or by the prompts
//   printed    a batch's mean gradient is bounded, u, v and p_G each by itself and charged as if alone
#pragma once

#include "methods/prompts/prompt_terms.h"
#include "privacy/dpsgd/noisy_steps.h"

#include <memory>
#include <string>
#include <vector>

namespace sotto::methods {

class PromptGradients {
 public:
  PromptGradients(const PublicContext& context, PromptTerms terms) : context_(context), terms_(std::move(terms)) {}
  virtual ~PromptGradients() = default;

  // How one client's steps are noised, and what they release.
  privacy::NoisySteps steps(const PromptLearner& learner, const ClientFacts& client) const;
  privacy::Channel steps_channel(const privacy::NoisySteps& steps, const ClientFacts& client) const;
  // The norm, at most, of what a step's noise falls on.
  virtual double step_bound(const privacy::DescentPlan& plan) const = 0;

  // What a batch says, bounded as steps() expects.
  virtual privacy::Bounded bounded(const PromptLearner& learner, const PromptLearner::Evidence& evidence) const = 0;
  // What the learner moves by, of the same with noise. All of it is post-processing.
  virtual NamedTensors gradients(const PromptLearner& learner, const NamedTensors& noisy,
                                 const privacy::DescentPlan& plan) const = 0;

 protected:
  // What is bounded and noised together in a step: a name and sizes.
  struct Part {
    std::string name;
    int64_t tensors = 0;
    int64_t coordinates = 0;
  };
  virtual std::vector<Part> parts(const PromptLearner& learner) const = 0;
  // Under which what is bounded moves when a record does.
  virtual privacy::Adjacency adjacency() const { return terms_.neighbours.adjacency; }
  virtual double step_multiplier(const privacy::DescentPlan& plan, const ClientFacts& client) const = 0;
  virtual privacy::GroupwiseGaussian mechanism(std::vector<privacy::Group> groups, double multiplier) const = 0;
  // What the paper says of a release, if it is made as printed.
  virtual privacy::Claim claim(double /*epsilon*/) const { return {}; }

  std::vector<privacy::Group> groups_of(const std::vector<Part>& parts) const;
  std::vector<privacy::ClipRule> rules_of(const std::vector<Part>& parts) const;
  const PublicContext& context() const { return context_; }
  const PromptTerms& terms() const { return terms_; }

 private:
  PublicContext context_;
  PromptTerms terms_;
};

// Gradients by the prompts themselves, in rows that are bounded one by one. A trusted server can add up those of the
// global prompt; clients then noise the others alone.
class PromptRows : public PromptGradients {
 public:
  using PromptGradients::PromptGradients;

  // Tensors [rows, …], the global prompt's last.
  virtual NamedTensors rows(const PromptLearner& learner, const PromptLearner::Evidence& evidence) const = 0;
  privacy::Bounded bounded_rows(const PromptLearner& learner, NamedTensors rows) const;
  privacy::Bounded bounded(const PromptLearner& learner, const PromptLearner::Evidence& evidence) const override {
    return bounded_rows(learner, rows(learner, evidence));
  }

  // What a client hands to a trusted server: the sum of the global prompt's rows.
  privacy::Bounded bounded_global(const at::Tensor& rows) const;
  // What that server adds to the sum of all clients, what it releases, and what it divides that by.
  privacy::GroupwiseGaussian server_mechanism(const PromptLearner& learner) const;
  privacy::Channel server_channel(const privacy::GroupwiseGaussian& mechanism, double epsilon, int64_t times) const;
  virtual double server_divisor() const = 0;

 protected:
  virtual double server_multiplier() const = 0;
};

// For terms under which somebody adds noise. A UserError for budgets that no noise can keep.
std::unique_ptr<PromptGradients> make_prompt_gradients(const PublicContext& context, const PromptTerms& terms);
// The same for a trusted server and its clients.
std::unique_ptr<PromptRows> make_prompt_rows(const PublicContext& context, const PromptTerms& terms);

// The forms.
std::unique_ptr<PromptGradients> make_sound_text_gradients(const PublicContext& context, const PromptTerms& terms);
std::unique_ptr<PromptRows> make_sound_rows(const PublicContext& context, const PromptTerms& terms);
std::unique_ptr<PromptRows> make_printed_rows(const PublicContext& context, const PromptTerms& terms);

// How a client's global gradient goes to a trusted server.
privacy::Channel gradient_channel(const RunSettings& spec, const ClientFacts& client);

}  // namespace sotto::methods

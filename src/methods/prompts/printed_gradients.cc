// As printed: a row is the mean of a batch, bounded as a whole, and every tensor has the same noise.
#include "methods/prompts/prompt_gradients.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

namespace sotto::methods {
namespace {

double printed_stddev(const RunSettings& spec, double clip) {
  return clip / static_cast<double>(spec.federation.batch) *
         std::sqrt(static_cast<double>(spec.planned_rounds()) * std::log(1 / spec.privacy->delta)) /
         spec.privacy->least_budget();
}

class BatchRows : public PromptRows {
 public:
  BatchRows(const PublicContext& context, const PromptTerms& terms)
      : PromptRows(context, terms), stddev_(printed_stddev(context.spec, terms.options.clip)) {}

  double step_bound(const privacy::DescentPlan&) const override { return terms().options.clip; }

  NamedTensors rows(const PromptLearner& learner, const PromptLearner::Evidence& evidence) const override {
    const double records = static_cast<double>(std::max<int64_t>(evidence.images.size(0), 1));
    NamedTensors rows = learner.pull_back(PromptLearner::sum_of(evidence) / records);
    for (NamedTensor& row : rows) row.value = row.value.unsqueeze(0);
    return rows;
  }

  NamedTensors gradients(const PromptLearner&, const NamedTensors& noisy, const privacy::DescentPlan&) const override {
    return clone(noisy);
  }

  double server_divisor() const override { return static_cast<double>(expected_cohort(context().spec)); }

 protected:
  std::vector<Part> parts(const PromptLearner& learner) const override {
    std::vector<Part> parts;
    for (const NamedTensor& shape : learner.parameter_shapes()) {
      if (shape.name == prompt_names::kGlobal && terms().trusts_server()) continue;
      parts.push_back({shape.name, 1, shape.value.numel()});
    }
    return parts;
  }

  // One record may turn the whole row.
  privacy::Adjacency adjacency() const override { return privacy::Adjacency::kReplace; }

  // The noise is what is printed, whatever it multiplies.
  double step_multiplier(const privacy::DescentPlan&, const ClientFacts&) const override { return 0; }
  double server_multiplier() const override { return 0; }

  privacy::GroupwiseGaussian mechanism(std::vector<privacy::Group> groups, double) const override {
    const std::vector<double> stddevs(groups.size(), stddev_);
    return privacy::GroupwiseGaussian::with_stddevs(std::move(groups), stddevs);
  }

  privacy::Claim claim(double epsilon) const override { return {.by = privacy::kClaimRun, .epsilon = epsilon}; }

 private:
  double stddev_;
};

}  // namespace

std::unique_ptr<PromptRows> make_printed_rows(const PublicContext& context, const PromptTerms& terms) {
  return std::make_unique<BatchRows>(context, terms);
}

}  // namespace sotto::methods

#include "methods/prototypes/entries.h"
#include "methods/prototypes/losses.h"

#include <ATen/ATen.h>

namespace sotto::methods {
namespace {

class FedPlvm : public Framework {
 public:
  explicit FedPlvm(settings::Section& section)
      : temperature_(section.number("temperature", 0.07, settings::kPositive)),
        alpha_(section.number("alpha", 0.25, {.low = 0.0, .high = 1.0, .low_excluded = true})),
        weight_(section.number("prototype_weight", 0.5, settings::kNonNegative)) {}

  LocalPrototypes local() const override { return LocalPrototypes::kFinch; }

  at::Tensor loss(const LocalBatch& batch, const NamedTensors& broadcast) const override {
    const at::Tensor fit = at::cross_entropy_loss(batch.logits, batch.labels);
    const PrototypeSet clusters = find_prototypes(broadcast, kGlobal);
    if (clusters.empty()) return fit;
    const at::Tensor similarity = sparse_cosine(batch.features, clusters.values, alpha_);
    return fit + weight_ * (contrast(similarity, batch.labels, clusters.classes, temperature_) +
                            correction(similarity, batch.labels, clusters.classes));
  }

  NamedTensors generate(const std::vector<PrototypeSet>& clients, const GeneratorContext& context) const override {
    NamedTensors made;
    append(made, kGlobal, finch_per_class(clients, context));
    return made;
  }

 private:
  double temperature_, alpha_, weight_;
};

}  // namespace

std::unique_ptr<Framework> make_fedplvm(settings::Section& section) {
  return std::make_unique<FedPlvm>(section);
}

MethodEntry fedplvm() {
  return prototype_method("fedplvm", "clusters at clients and server, contrasted by a sparse cosine",
                          "Wang et al., NeurIPS 2024", make_fedplvm);
}

}  // namespace sotto::methods

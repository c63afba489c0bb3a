#include "methods/prototypes/entries.h"
#include "methods/prototypes/losses.h"

#include <ATen/ATen.h>

namespace sotto::methods {
namespace {

class FedProto : public Framework {
 public:
  explicit FedProto(settings::Section& section)
      : weight_(section.number("prototype_weight", 0.1, settings::kNonNegative)) {}

  at::Tensor loss(const LocalBatch& batch, const NamedTensors& broadcast) const override {
    return at::cross_entropy_loss(batch.logits, batch.labels) +
           weight_ * distance_to_own(batch.features, batch.labels, find_prototypes(broadcast, kGlobal));
  }

  NamedTensors generate(const std::vector<PrototypeSet>& clients, const GeneratorContext& context) const override {
    NamedTensors made;
    append(made, kGlobal, weighted_means(clients, context));
    return made;
  }

 private:
  double weight_;
};

}  // namespace

std::unique_ptr<Framework> make_fedproto(settings::Section& section) {
  return std::make_unique<FedProto>(section);
}

MethodEntry fedproto() {
  return prototype_method("fedproto", "features are drawn to the mean prototype of their class",
                          "Tan et al., AAAI 2022", make_fedproto);
}

}  // namespace sotto::methods

#include "methods/prototypes/entries.h"
#include "methods/prototypes/losses.h"

#include <ATen/ATen.h>

namespace sotto::methods {
namespace {

constexpr const char* kUnbiased = "unbiased";

class Fpl : public Framework {
 public:
  explicit Fpl(settings::Section& section)
      : temperature_(section.number("temperature", 0.07, settings::kPositive)),
        contrast_weight_(section.number("contrast_weight", 0.5, settings::kNonNegative)),
        prototype_weight_(section.number("prototype_weight", 0.5, settings::kNonNegative)) {}

  at::Tensor loss(const LocalBatch& batch, const NamedTensors& broadcast) const override {
    const at::Tensor fit = at::cross_entropy_loss(batch.logits, batch.labels);
    const PrototypeSet clusters = find_prototypes(broadcast, kGlobal);
    if (clusters.empty()) return fit;
    return fit +
           contrast_weight_ *
               contrast(cosine(batch.features, clusters.values), batch.labels, clusters.classes, temperature_) +
           prototype_weight_ * distance_to_own(batch.features, batch.labels, find_prototypes(broadcast, kUnbiased));
  }

  NamedTensors generate(const std::vector<PrototypeSet>& clients, const GeneratorContext& context) const override {
    const PrototypeSet clusters = finch_per_class(clients, context);
    NamedTensors made;
    append(made, kGlobal, clusters);
    append(made, kUnbiased, plain_means({clusters}, context));
    return made;
  }

  BroadcastShape generated(const PrototypeShape& shape) const override {
    BroadcastShape shapes = shape_of_set(kGlobal, shape);
    for (auto& tensor : shape_of_set(kUnbiased, shape, privacy::kOtherLength)) shapes.push_back(std::move(tensor));
    return shapes;
  }

 private:
  double temperature_, contrast_weight_, prototype_weight_;
};

}  // namespace

std::unique_ptr<Framework> make_fpl(settings::Section& section) {
  return std::make_unique<Fpl>(section);
}

MethodEntry fpl() {
  return prototype_method("fpl", "contrast with clusters of prototypes, and a pull to the mean of their centres",
                          "Huang et al., CVPR 2023", make_fpl);
}

}  // namespace sotto::methods

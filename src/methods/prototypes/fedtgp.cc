#include "methods/prototypes/entries.h"
#include "methods/prototypes/losses.h"
#include "models/layers.h"

#include <ATen/ATen.h>
#include <torch/optim/adam.h>

#include <algorithm>

namespace sotto::methods {
namespace {

class FedTgp : public Framework {
 public:
  explicit FedTgp(settings::Section& section)
      : weight_(section.number("prototype_weight", 1.0, settings::kNonNegative)),
        epochs_(section.integer("server_epochs", 100, settings::at_least(1))),
        lr_(section.number("server_lr", 0.01, settings::kPositive)),
        margin_(section.number("margin", 100.0, settings::kNonNegative)) {}

  at::Tensor loss(const LocalBatch& batch, const NamedTensors& broadcast) const override {
    return at::cross_entropy_loss(batch.logits, batch.labels) +
           weight_ * distance_to_own(batch.features, batch.labels, find_prototypes(broadcast, kGlobal));
  }

  // Prototypes are what a small network makes of one embedding per class, trained so that every client's prototype is
  // nearer to its own class's than to any other by the margin.
  NamedTensors generate(const std::vector<PrototypeSet>& clients, const GeneratorContext& context) const override {
    NamedTensors made;
    const PrototypeSet all = concatenate(clients);
    if (all.empty()) return made;
    const PrototypeSet means = plain_means(clients, context);
    const int64_t classes = context.shape.classes, width = context.shape.width;
    RandomStream stream(context.seed, "prototype-generator", static_cast<uint64_t>(context.round));
    at::Generator init = stream.torch_generator();
    models::Embedding embedding(classes, width, init);
    models::Linear first(width, width, init), last(width, width, init);
    std::vector<at::Tensor> parameters = {embedding.weight, first.weight, first.bias, last.weight, last.bias};
    torch::optim::Adam optimizer(parameters, torch::optim::AdamOptions(lr_));
    const auto prototypes = [&] { return last.forward(at::relu(first.forward(embedding.weight))); };

    const double margin = std::min(margin_, widest_gap(means.values));
    const at::Tensor own = at::one_hot(all.classes, classes).to(at::kFloat);
    const at::Tensor absent = at::ones({classes}, at::kBool).index_fill_(0, means.classes, false);
    for (int64_t epoch = 0; epoch < epochs_; ++epoch) {
      optimizer.zero_grad();
      const at::Tensor distances = at::cdist(all.values, prototypes()) + margin * own;
      at::cross_entropy_loss(-distances.masked_fill(absent.unsqueeze(0), 1e9), all.classes).backward();
      optimizer.step();
    }
    append(made, kGlobal, {prototypes().detach().index_select(0, means.classes).clone(), means.classes, means.weights});
    return made;
  }

 private:
  // The largest distance between any two classes' means.
  static double widest_gap(const at::Tensor& means) {
    return means.size(0) < 2 ? 0.0 : at::cdist(means, means).max().item<double>();
  }

  double weight_;
  int64_t epochs_;
  double lr_, margin_;
};

}  // namespace

std::unique_ptr<Framework> make_fedtgp(settings::Section& section) {
  return std::make_unique<FedTgp>(section);
}

MethodEntry fedtgp() {
  return prototype_method("fedtgp", "the server trains prototypes that keep classes apart by an adaptive margin",
                          "Zhang et al., AAAI 2024", make_fedtgp);
}

}  // namespace sotto::methods

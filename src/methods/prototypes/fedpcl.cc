#include "methods/prototypes/entries.h"
#include "methods/prototypes/losses.h"

#include <ATen/ATen.h>

namespace sotto::methods {
namespace {

constexpr const char* kClients = "clients.values";  // [clients, C, d]
constexpr const char* kHeld = "clients.held";       // bool [clients, C]

// The encoder learns by contrast alone; the head is fitted to what the encoder gives, and sends nothing back.
class FedPcl : public Framework {
 public:
  explicit FedPcl(settings::Section& section)
      : temperature_(section.number("temperature", 0.07, settings::kPositive)) {}

  bool head_is_apart() const override { return true; }

  at::Tensor loss(const LocalBatch& batch, const NamedTensors& broadcast) const override {
    const at::Tensor fit = at::cross_entropy_loss(batch.logits, batch.labels);
    const PrototypeSet global = find_prototypes(broadcast, kGlobal);
    if (global.empty()) return fit;
    return fit + contrast(cosine(batch.features, global.values), batch.labels, global.classes, temperature_) +
           contrast_with_each(batch, find_tensor(broadcast, kClients), find_tensor(broadcast, kHeld));
  }

  NamedTensors generate(const std::vector<PrototypeSet>& clients, const GeneratorContext& context) const override {
    NamedTensors made;
    append(made, kGlobal, plain_means(clients, context));
    if (made.empty()) return made;
    const auto count = static_cast<int64_t>(clients.size());
    at::Tensor values = at::zeros({count, context.shape.classes, context.shape.width});
    at::Tensor held = at::zeros({count, context.shape.classes}, at::kBool);
    for (int64_t i = 0; i < count; ++i) {
      const PrototypeSet& set = clients[static_cast<size_t>(i)];
      if (set.empty()) continue;
      values[i].index_copy_(0, set.classes, set.values);
      held[i].index_fill_(0, set.classes, true);
    }
    made.push_back({kClients, values});
    made.push_back({kHeld, held});
    return made;
  }

  BroadcastShape generated(const PrototypeShape& shape) const override {
    BroadcastShape shapes = shape_of_set(kGlobal, shape);
    shapes.push_back({.name = kClients, .sizes = {privacy::kOtherLength, shape.classes, shape.width}});
    shapes.push_back({.name = kHeld, .sizes = {privacy::kOtherLength, shape.classes}, .dtype = at::kBool});
    return shapes;
  }

 private:
  // Client by client, the contrast with that client's prototypes; their mean over clients. All in one product.
  at::Tensor contrast_with_each(const LocalBatch& batch, const at::Tensor& values, const at::Tensor& held) const {
    const int64_t clients = values.size(0), classes = values.size(1), records = batch.labels.size(0);
    constexpr double kNever = -1e30;
    const at::Tensor scaled = (cosine(batch.features, values.flatten(0, 1)) / temperature_)
                                  .view({records, clients, classes})
                                  .masked_fill(held.logical_not().unsqueeze(0), kNever);
    const at::Tensor own = batch.labels.view({records, 1, 1}).expand({records, clients, 1});
    const at::Tensor share = scaled.logsumexp(2) - scaled.gather(2, own).squeeze(2);
    const at::Tensor applies = held.index_select(1, batch.labels).t();
    const at::Tensor sums = at::where(applies, share, at::zeros({}, share.options())).sum(0);
    const at::Tensor counts = applies.sum(0);
    return (sums / counts.clamp_min(1)).sum() / counts.gt(0).sum().clamp_min(1);
  }

 private:
  double temperature_;
};

}  // namespace

std::unique_ptr<Framework> make_fedpcl(settings::Section& section) {
  return std::make_unique<FedPcl>(section);
}

MethodEntry fedpcl() {
  return prototype_method("fedpcl", "features are contrasted with the global prototypes and with every client's",
                          "Tan et al., NeurIPS 2022", make_fedpcl);
}

}  // namespace sotto::methods

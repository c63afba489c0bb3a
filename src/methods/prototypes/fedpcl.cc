#include "methods/prototypes/frameworks.h"
#include "methods/prototypes/losses.h"

#include <ATen/ATen.h>

#include <fmt/format.h>

namespace sotto::methods {
namespace {

// The encoder learns by contrast alone; the head is fitted to what the encoder gives, and sends nothing back.
class FedPcl : public Framework {
 public:
  explicit FedPcl(config::Section& section) : temperature_(section.number("temperature", 0.07, config::kPositive)) {}

  bool head_is_apart() const override { return true; }

  at::Tensor loss(const LocalBatch& batch, const NamedTensors& broadcast) const override {
    at::Tensor total = at::cross_entropy_loss(batch.logits, batch.labels);
    const auto against = [&](const PrototypeSet& set) {
      return contrast(cosine(batch.features, set.values), batch.labels, set.classes, temperature_);
    };
    const PrototypeSet global = find_prototypes(broadcast, kGlobal);
    if (!global.empty()) total = total + against(global);
    int64_t clients = 0;
    at::Tensor from_clients;
    for (;; ++clients) {
      const PrototypeSet set = find_prototypes(broadcast, fmt::format("client.{}", clients));
      if (set.empty()) break;
      from_clients = clients == 0 ? against(set) : from_clients + against(set);
    }
    return clients == 0 ? total : total + from_clients / static_cast<double>(clients);
  }

  NamedTensors generate(const std::vector<PrototypeSet>& clients, const GeneratorContext& context) const override {
    NamedTensors made;
    append(made, kGlobal, plain_means(clients, context));
    int64_t next = 0;
    for (const PrototypeSet& set : clients) {
      if (!set.empty()) append(made, fmt::format("client.{}", next++), set);
    }
    return made;
  }

 private:
  double temperature_;
};

}  // namespace

std::unique_ptr<Framework> make_fedpcl(config::Section& section) {
  return std::make_unique<FedPcl>(section);
}

MethodEntry fedpcl() {
  return prototype_method("fedpcl", "features are contrasted with the global prototypes and with every client's",
                          "Tan et al., NeurIPS 2022", make_fedpcl);
}

}  // namespace sotto::methods

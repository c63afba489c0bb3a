// FedPer and FedRep: one body for all, a head for each.
//
// The body's gradient goes through the head. A head that was fitted without noise would carry every record into every
// record's gradient, and no bound would hold. So under both methods the body learns below a head that is trained with
// noise as it is itself, and stays with its client. FedPer's clients use that head; FedRep's fit another one to the body
// that they are sent, without noise, which nothing that is sent depends on.
//
// M. G. Arivazhagan et al., "Federated Learning with Personalization Layers", 2019. L. Collins et al., ICML 2021.
#include "base/error.h"
#include "methods/dpsgd/noisy_training.h"
#include "methods/parts/local_trainer.h"
#include "methods/personal/entries.h"
#include "methods/personal/own_model_client.h"

#include <ATen/ATen.h>

#include <memory>
#include <utility>

namespace sotto::methods {
namespace {

class FedRepClient : public OwnModelClient {
 public:
  using OwnModelClient::OwnModelClient;

 private:
  LocalReport train_own(const data::Shard& shard, const StepContext& context) override {
    const models::FlatParameters& flat = trainer_.flat();
    const at::Tensor body = received().narrow(0, 0, flat.shared().numel());
    flat.shared().copy_(body);
    return trainer_.descend(
        records_, shard, context, cross_entropy(),
        [](const models::FlatParameters& parameters) { parameters.shared_gradient().zero_(); },
        [&] { flat.shared().copy_(body); });
  }
};

MethodEntry shared_body(const char* name, const char* what, const char* citation) {
  MethodEntry entry = noisy_training(name, what, citation, read_clip_options, PaperVariant::kNone);
  entry.family = "personal";
  entry.personal_parameters = {"head."};
  entry.plan = [plan = entry.plan](const PublicContext& context, const ClientFacts& client) {
    if (initial_model(context)->shared_parameters().empty()) {
      fail_user("model.name: '{}' has no body to share under '{}': every parameter would stay with its client",
                context.spec.model.name, context.spec.method);
    }
    return plan(context, client);
  };
  return entry;
}

}  // namespace

MethodEntry fedper() {
  return shared_body("fedper", "a body that all share, and heads that stay; both by DP-SGD",
                     "Arivazhagan et al., 2019");
}

MethodEntry fedrep() {
  MethodEntry entry = shared_body(
      "fedrep",
      "a body that all share, by DP-SGD; clients fit heads of their own to it, without noise, that never leave",
      "Collins et al., ICML 2021");
  entry.make_client = [sender = entry.make_client](const ClientContext& context) -> std::unique_ptr<ClientMethod> {
    return std::make_unique<FedRepClient>(context, sender(context));
  };
  return entry;
}

}  // namespace sotto::methods

// Encoders of prototype methods: what each kind of client has, and how one is trained without showing a record.
#pragma once

#include "methods/parts/local_trainer.h"
#include "methods/prototypes/prototype_member.h"
#include "methods/prototypes/prototype_model.h"
#include "privacy/dpsgd/noisy_descent.h"

#include <vector>

namespace sotto::methods {

// What an encoder's training is called in the ledger.
inline constexpr const char* kEncoder = "encoder";

// How many kinds of client there are, and what each kind's model is.
std::vector<PrototypeModelOptions> kinds_of(const PublicContext& context, const PrototypeMember& member);

// The public records that encoders are trained on, if they are.
std::vector<data::DataOptions> public_records(const RunSettings& spec, const PrototypeOptions& options);

// All parts of an encoder as they come out of training on public records: nothing of it is private.
NamedTensors publicly_trained(const PublicContext& context, const PrototypeModelOptions& model,
                              const PrototypeOptions& options);

// An encoder that is trained with DP-SGD; every client has one of its own.
struct NoisyEncoder {
  NoisyEncoder(const PublicContext& context, const PrototypeModelOptions& options);

  LocalTrainer trainer;
  privacy::NoisyDescent descent;
  NamedTensors initial;
};

privacy::DescentPlan encoder_plan(const RunSettings& spec, const PrototypeOptions& options, const ReleasePrices& prices,
                                  const ClientFacts& client);
privacy::Channel encoder_channel(const privacy::NoisyDescent& descent, const privacy::DescentPlan& plan,
                                 const ReleasePrices& prices, const ClientFacts& client);

}  // namespace sotto::methods

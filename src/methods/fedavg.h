// FedAvg: clients train the shared parameters, the server averages them.
//
// B. McMahan et al., "Communication-Efficient Learning of Deep Networks from Decentralized Data", AISTATS 2017.
// Not private: models and record counts go up in the clear.
#pragma once

#include "methods/local_trainer.h"
#include "methods/method.h"

namespace sotto::methods {

MethodEntry fedavg();

// FedAvg's client, with an optional term added to the gradient of every step. `anchor` is the flat vector of shared
// parameters at the start of the round.
using AnchoredTerm = std::function<void(const models::FlatParameters& parameters, const at::Tensor& anchor)>;
std::unique_ptr<ClientMethod> make_averaging_client(const MethodContext& context, AnchoredTerm term = {});

// True if some parameters stay with the client (model.personal).
bool has_personal_part(const config::RunSpec& spec);

// What FedAvg and its kin release.
ReleasePlan averaging_plan(const MethodContext& context, const ClientFacts& client);

}  // namespace sotto::methods

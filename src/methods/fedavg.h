// FedAvg: clients train the shared parameters, the server averages them.
//
// B. McMahan et al., "Communication-Efficient Learning of Deep Networks from Decentralized Data", AISTATS 2017.
// Not private: models and record counts go up in the clear.
#pragma once

#include "methods/method.h"
#include "methods/parts/local_trainer.h"

namespace sotto::methods {

MethodEntry fedavg();

// FedAvg's client, with an optional term added to the gradient of every step. `anchor` is the flat vector of shared
// parameters at the start of the round.
using AnchoredTerm = std::function<void(const models::FlatParameters& parameters, const at::Tensor& anchor)>;
std::unique_ptr<ClientMethod> make_averaging_client(const ClientContext& context, AnchoredTerm term = {});

// True if some parameters stay with the client (model.personal).
bool has_personal_part(const RunSettings& spec);

// What FedAvg and its kin release.
ReleasePlan averaging_plan(const PublicContext& context, const ClientFacts& client);
privacy::UploadShape averaging_upload(const PublicContext& context, const Broadcast& broadcast);

}  // namespace sotto::methods

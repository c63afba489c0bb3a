// Weighted averaging of uploaded models: the server of FedAvg and its kin.
#pragma once

#include "methods/method.h"

namespace sotto::methods {

// The name of the scalar that carries a client's weight in its upload.
inline constexpr const char* kRecordsName = "records";

// Σ n_i w_i / Σ n_i over the round's uploads, n_i from the scalar `records` of each upload, or 1 where there is none
// (McMahan et al., AISTATS 2017).
std::unique_ptr<ServerMethod> make_averaging_server(const MethodContext& context);
// The same for uploads that hold what `start` holds, which is also the first broadcast.
std::unique_ptr<ServerMethod> make_averaging_server_from(NamedTensors start);

}  // namespace sotto::methods

// Weighted averaging of uploaded models: the server of FedAvg and its kin.
#pragma once

#include "methods/method.h"

#include <string>

namespace sotto::methods {

// The name of the scalar that carries a client's weight in its upload.
inline constexpr const char* kRecordsName = "records";

// Σ n_i w_i / Σ n_i over the round's uploads, n_i from the scalar `records` of each upload, or 1 where there is none
// (McMahan et al., AISTATS 2017).
std::unique_ptr<ServerMethod> make_averaging_server(const PublicContext& context);
// The same for tensors of `start`, which is also the first broadcast. The mean of a tensor is over the uploads that
// hold it; one that none of them holds stays as it was.
std::unique_ptr<ServerMethod> make_averaging_server_from(NamedTensors start);
// The same for uploads of what is to be added to the tensors of `start`.
std::unique_ptr<ServerMethod> make_updating_server_from(NamedTensors start);

// What such a server takes: tensors like those of `start`, and the client's weight.
privacy::UploadShape averaging_shape(const NamedTensors& start);
// Of FedAvg's.
privacy::UploadShape model_shape(const PublicContext& context);
// How a positive number travels that follows from settings and declared facts. Its bounds are far beyond what settings
// can lead to, and so far from where floats end that nothing it multiplies overflows by it alone.
privacy::TensorShape number_shape(const std::string& name);
// How the weight travels: a number of records, or one over the variance of what was noised.
privacy::TensorShape weight_shape();
NamedTensor declared_weight(double weight);

}  // namespace sotto::methods

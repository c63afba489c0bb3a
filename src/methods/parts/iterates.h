// A server that averages clients' models, moves with momentum, and publishes the average of where it has been.
//
// Noise in the last iterate is that of its last steps; an average over many has less. Both are made of releases, so that
// averages cost nothing.
#pragma once

#include "methods/method.h"

#include <memory>

namespace sotto::methods {

// The last iterate, from which clients go on, travels under these names; the models' own names carry the average.
inline constexpr const char* kIteratePrefix = "iterate.";

struct IterateOptions {
  double momentum = 0;
  double averaging = 0;  // iterate t counts t^averaging; 0: the last one alone
};

std::unique_ptr<ServerMethod> make_iterate_server(NamedTensors start, const IterateOptions& options);

}  // namespace sotto::methods

// The part of a prototype model that no training changes, applied to all records once.
//
// The public projection, and an encoder without parameters, make the same of a record in every epoch of every round.
// Doing it anew for every batch was most of the work on wide features.
#pragma once

#include "data/dataset.h"
#include "methods/prototypes/prototype_model.h"

#include <cstdint>
#include <memory>

namespace sotto::methods {

// `records` with model.prepare(x) in place of x; nothing if the model has no such part, or if records are not features.
// Models of the same options and seed share one copy, for as long as one of them is there. Thread-safe.
std::shared_ptr<const data::Records> prepared_records(const data::Records& records, const PrototypeModel& model,
                                                      uint64_t seed);

}  // namespace sotto::methods

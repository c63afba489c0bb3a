// Where features are measured from, and on which scale: data.centre and data.normalise.
//
// Backbones' features often share a large mean. It says nothing of classes, and it fills the bound of whatever is
// clipped later. What is taken off must not let one record move another's features: a record's own mean and a public
// vector are fine for every method, a client's mean only for what stays at home (Setup looks after that).
#pragma once

#include "data/dataset.h"
#include "data/options.h"
#include "data/partition.h"

#include <vector>

namespace sotto::models {

// Takes the centre off all records, unless it is a client's own, and scales them to length 1 if that is asked for.
// Records that are not features, and a file whose vector does not fit, are UserErrors.
void place_features(data::Dataset& dataset, const data::DataOptions& options);

// Takes the mean of each client's training records off all its records, training and held out, and scales them again if
// that is asked for. Held-out records must belong to one client each.
void centre_by_client(data::Dataset& dataset, const data::DataOptions& options,
                      const std::vector<data::Shard>& clients);

}  // namespace sotto::models

// What a private run takes for public must not be the clients' own.
#pragma once

#include "config/run_spec.h"
#include "data/options.h"

namespace sotto::federation {

// With [privacy]: a UserError if model.weights, the backbone of data.features (also of a feature file) or the data that
// the method calls public was made of the clients' own records, by name, path or content (data/origin.h). No budget
// covers what is learnt from those. Records that the clients do not hold are fine: other domains of the same dataset.
// Weights from elsewhere are taken at their word.
void refuse_own_data_as_public(const config::RunSpec& spec);
// The same where the clients' records are these, and the config is somebody else's: at a home.
void refuse_own_data_as_public(const config::RunSpec& spec, const data::DataOptions& clients);

}  // namespace sotto::federation

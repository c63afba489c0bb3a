// The list of classes, where the user declares it.
//
// It shapes the model and everything that is sent. Found in the records, it would say whether somebody holds the only
// record of a class (docs/proofs/adjacencies.md, "Names of classes").
#pragma once

#include "data/dataset.h"
#include "data/options.h"

#include <string>
#include <vector>

namespace sotto::data {

// Gives the records the labels that they have in this list. A class that it does not hold is a UserError; one that no
// record has is none.
void declare_classes(Dataset& dataset, const std::vector<std::string>& names);

// Whether [data] leaves the classes to be found in the user's own records: tables have them in their schema, and data
// known by name in public.
bool finds_classes_in_records(const DataOptions& options, const Dataset& dataset);

// The line of a config that declares the classes that these records happen to have.
std::string declaration_of(const std::vector<std::string>& names);

}  // namespace sotto::data

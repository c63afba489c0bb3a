// Domains of a task: choosing them, making them from one dataset, joining datasets as domains.
#pragma once

#include "data/dataset.h"

#include <cstdint>
#include <string>
#include <vector>

namespace sotto::data {

// The records of the named domains only, numbered in the given order. Unknown or repeated names are UserErrors.
Dataset select_domains(const Dataset& dataset, const std::vector<std::string>& names);

// Makes domains of a one-domain image dataset: each record is dealt to one of the named transforms (see transforms.h)
// and seen through it, training and test records alike. Which record goes where depends on the seed alone; shares are
// equal to within one record.
Dataset deal_to_transforms(const Dataset& dataset, const std::vector<std::string>& transforms, uint64_t seed);

// Image datasets with the same classes as domains of one task, named after themselves and brought to a common shape:
// `size` pixels a side, three channels if any has three.
Dataset join_as_domains(const std::string& name, const std::vector<Dataset>& members, int64_t size);

}  // namespace sotto::data

// Operators without parameters that rebuilt models may have: each record's result depends on that record alone, if its
// first dimension is the records.
#pragma once

#include <string>

namespace sotto::models {

bool is_known_operator(const std::string& name);

}  // namespace sotto::models

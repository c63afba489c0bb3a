// All methods, by name.
#pragma once

#include "config/load.h"
#include "methods/method.h"

#include <string>
#include <vector>

namespace sotto::methods {

const std::vector<MethodEntry>& catalogue();

// Throws a UserError for an unknown name.
const MethodEntry& find_method(const std::string& name);

// What config::load_run_spec needs to read [method].
config::MethodReader method_reader();

}  // namespace sotto::methods

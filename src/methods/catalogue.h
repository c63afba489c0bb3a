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

// What a run trains, for people: [model].name, or the encoder that prompts are learnt for.
std::string trained_model_name(const config::RunSpec& spec);

// What config::load_run_spec needs to read [method].
config::MethodReader method_reader();

}  // namespace sotto::methods

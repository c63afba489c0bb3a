// All methods, by name.
#pragma once

#include "methods/method.h"

#include <string>
#include <vector>

namespace sotto::methods {

const std::vector<MethodEntry>& catalogue();

// Throws a UserError for an unknown name.
const MethodEntry& find_method(const std::string& name);

// What a run trains, for people: [model].name, or the encoder that prompts are learnt for.
std::string trained_model_name(const RunSettings& spec);

std::vector<std::string> method_names();

}  // namespace sotto::methods

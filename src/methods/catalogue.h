// All methods, by name.
#pragma once

#include "methods/method.h"

#include <string>
#include <vector>

namespace sotto::methods {

const std::vector<MethodEntry>& catalogue();

// The name that a method goes by, of one that it went by before; any other name as it is.
std::string current_name(const std::string& name);

// By its name or one that it had before. Throws a UserError for an unknown one.
const MethodEntry& find_method(const std::string& name);

// What a run trains, for people: [model].name, or the encoder that prompts are learnt for.
std::string trained_model_name(const RunSettings& spec);

std::vector<std::string> method_names();

// A method of another program's: from here on it is found like those above, which it is not listed among. A name that is
// taken is a UserError. Thread-safe.
void add_method(MethodEntry entry);

}  // namespace sotto::methods

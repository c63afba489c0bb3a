// The model of somebody who takes part in a federation, at its home: while it goes on, and after it.
#pragma once

#include "artifacts/trained_model.h"

#include <filesystem>
#include <string>

namespace sotto::member {

// The home's own model where the method has such, otherwise the global one; with the records of the home, some of them
// held out. Of the federation whose hash begins like this; "": of the only one. Also beside the process that takes part.
// A home without such a federation, or before its first round, is a UserError.
artifacts::TrainedModel home_model(const std::filesystem::path& home, const std::string& federation);

}  // namespace sotto::member

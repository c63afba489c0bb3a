// The global model in a server's folder.
#pragma once

#include "artifacts/trained_model.h"

#include <filesystem>

namespace sotto::serve {

// After the last round that is done; without any records. A method that has no global model, and a federation before its
// first round, are UserErrors.
artifacts::TrainedModel server_model(const std::filesystem::path& folder);

}  // namespace sotto::serve

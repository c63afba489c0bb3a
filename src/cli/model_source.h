// Where a trained model comes from: a run directory, the home of a client, or the folder of a server.
#pragma once

#include "artifacts/trained_model.h"
#include "cli/command.h"

#include <cstdint>
#include <string>

namespace sotto::cli {

struct ModelSource {
  std::string folder;
  int64_t client = -1;     // runs: -1 = the global model
  std::string federation;  // homes that have joined several: how its hash begins
};

// --client and --federation; the folder is the command's own argument.
void add_model_options(Command& command, ModelSource& source);

// A UserError if there is none, or if an option does not belong to this kind of folder.
artifacts::TrainedModel open_model(const ModelSource& source);

// A UserError that says where to look instead if the folder is a client's home: `what` needs a run's figures.
void refuse_home(const std::string& folder, const std::string& what);

}  // namespace sotto::cli

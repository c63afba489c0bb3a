// A module of somebody else's, rebuilt from its TorchScript archive layer by layer.
//
// Every parameter that forward uses goes into a models::Layer, under the name it has there, so that per-example clipping is
// as exact and fast as for a model of the catalogue; the others are kept as they are. Operators without parameters run as
// libtorch has them. The last layer must be linear: it is the classifier.
#pragma once

#include "models/catalogue.h"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace sotto::models {

// A layer with parameters, as it was found.
struct ScriptLayer {
  std::string name;
  std::string kind;
  int64_t parameters = 0;
  int64_t uses = 1;
  bool trained = true;  // false: its parameters are frozen
};

// What was made of an archive.
struct ScriptLayers {
  std::vector<ScriptLayer> layers;
  int64_t operators = 0;  // without parameters
  int64_t dropouts = 0;   // off, unless model.dropout says how much
  int64_t classes = 0;
};

// Of an archive that can be rebuilt; otherwise a UserError that names the layer and says what can be done.
ScriptLayers inspect_script(const std::filesystem::path& file);

// options.weights is the archive; options.dropout is the probability of all of its dropout layers. Tried out with made-up records: one that cannot read them, gives another number of
// classes, lets one record change what is said of another, or says something else than the archive does, is a UserError.
// Where blueprint.may_be_opaque such a one is taken as it is (opaque.h) if that can be done.
std::shared_ptr<Model> make_script_model(const Blueprint& blueprint);

// A rebuilt model knows each parameter by one name. These are the same tensors under their other names too, as the
// archive's own class expects them.
NamedTensors with_all_names(NamedTensors weights, const std::filesystem::path& file);

}  // namespace sotto::models

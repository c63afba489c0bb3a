// A TorchScript module that is run as it is, without knowing its layers.
//
// Nothing bounds then what one record does to a gradient, and batches may be mixed and remembered (BatchNorm). So it is for
// frozen features, which are computed one record at a time, and for training without privacy; whoever adds noise must
// refuse an OpaqueModel.
#pragma once

#include "models/catalogue.h"
#include "models/model.h"

#include <filesystem>
#include <memory>
#include <string>

namespace sotto::models {

// A model for training without privacy. Its parameters and buffers are the module's own, under their names; it has no
// classifier of its own, and its features are its logits.
class OpaqueModel : public Model {
 public:
  // Why it is not rebuilt layer by layer.
  virtual const std::string& why() const = 0;
};

// A UserError if the module does not give the task's logits, draws random numbers, or changes what cannot be averaged.
// Dropout is left out, as it is of archives that are rebuilt.
std::shared_ptr<Model> make_opaque_model(const Blueprint& blueprint, const std::filesystem::path& file,
                                         const std::string& why);

// Frozen features: what the module gives for a record, flattened. Whatever it changes while it looks at one record is
// forgotten before the next, so that features depend on their record alone. Takes one record at a time. A UserError for a
// module that draws random numbers or changes its parameters.
std::shared_ptr<Model> make_script_backbone(const std::filesystem::path& file, const Task& task);

// Whether the file is a TorchScript archive that can be run as it is.
bool can_run_as_it_is(const std::filesystem::path& file);

}  // namespace sotto::models

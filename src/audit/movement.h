// How far an upload went from the model that was sent out.
#pragma once

#include "base/named_tensors.h"

#include <ATen/core/Tensor.h>

namespace sotto::audit {

// Uploads are models, parts of them, or what is to be added to them, by name or as one vector: taken as whichever makes
// the movement smaller. `parameters` are the shared ones at their values before; the result is flat, in their order,
// and zero where nothing was sent.
at::Tensor movement(const NamedTensors& upload, const NamedTensors& parameters);

}  // namespace sotto::audit

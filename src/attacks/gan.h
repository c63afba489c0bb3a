// What does a class look like that the attacker does not hold? A generator trained against the global model.
//
// A curious client trains a generator of (noise, class) whose judge is the global model: its classifier must see the
// class, and a real-or-fake output on its features, trained on the client's own records, must see something real (an
// auxiliary-classifier GAN after Hitaj et al., CCS 2017). The model itself is never changed.
#pragma once

#include "models/model.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace sotto::attacks {

struct GanOptions {
  int64_t steps = 400;
  int64_t batch = 64;
  double lr = 1e-3;
  int64_t each = 50;  // pictures of every class at the end
  uint64_t seed = 1;
};

// `real` are the curious client's own records, as the model sees them. [classes · each, …] in [-1, 1], class by class.
at::Tensor generate_by_class(models::Model& judge, const at::Tensor& real, int64_t classes, const GanOptions& options);

}  // namespace sotto::attacks

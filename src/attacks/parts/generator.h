// What does a class look like that the attacker does not hold? A generator trained against the global model.
//
// A curious client trains a generator of (noise, class). Its judge starts as the global model, with one more output on
// the features, real or fake, and goes on learning from the client's own records: its classifier must see the class,
// and the other output something real (an auxiliary-classifier GAN after Hitaj et al., CCS 2017).
#pragma once

#include "models/model.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace sotto::attacks {

struct GanOptions {
  int64_t steps = 400;
  int64_t batch = 64;
  double lr = 1e-3;        // of the generator
  double judge_lr = 2e-4;  // small: what the model knows of classes that the client lacks must last
  int64_t each = 50;       // pictures of every class at the end
  uint64_t seed = 1;
};

// `real` and `labels` are the curious client's own records, as the model sees them. The judge is changed.
// [classes · each, …] in [-1, 1], class by class.
at::Tensor generate_by_class(models::Model& judge, const at::Tensor& real, const at::Tensor& labels, int64_t classes,
                             const GanOptions& options);

}  // namespace sotto::attacks

// Prototypes that a client uploaded, and the space they were made in.
//
// Sound variants make them of features that no training has touched: the attacker has that encoder, it is public.
// Printed ones make them of the client's trained encoder, and the attacker is given it as it was when they were made.
#pragma once

#include "attacks/target.h"
#include "models/model.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>

namespace sotto::attacks {

struct PrototypeTable {
  at::Tensor values = {};   // [K, d]; undefined if there are none
  at::Tensor classes = {};  // int64 [K]
};

// `prototypes`, without classes that the client does not hold, or `sums` over `counts` that are at least one.
PrototypeTable prototypes_in(const NamedTensors& upload, int64_t classes);

// -‖feature - p‖² for each record, p the nearest prototype of its class; -∞ where its class has none.
at::Tensor prototype_scores(const at::Tensor& features, const at::Tensor& labels, const PrototypeTable& table);

// What an attacker holds against one client.
struct PrototypeTarget {
  PrototypeTable table = {};
  std::function<at::Tensor(const at::Tensor&)> features = {};  // of records, where the prototypes lie
  std::function<at::Tensor(const at::Tensor&)> predict = {};   // the client's own model, to judge pictures by
  std::shared_ptr<models::Model> encoder = {};                 // the same features, with gradients
};

// From the run's recorded uploads. `round` 0 is the first, or the last that was sent if clients train their encoders: one
// from before the last round is made by running it again, which takes replayed noise. A run without prototypes, and one
// whose features are moved or scaled before they are released, are UserErrors.
PrototypeTarget prototypes_of(const Target& target, int64_t client, int64_t round, int threads);
// The same of the same federation without privacy.
PrototypeTarget prototypes_without_privacy(const Target& target, int64_t client, int64_t round, int threads);

}  // namespace sotto::attacks

// Was this record trained on? What attacks by shadow models have in common.
#pragma once

#include "attacks/attack.h"
#include "attacks/parts/shadows.h"

#include <ATen/core/Tensor.h>

#include <nlohmann/json_fwd.hpp>

#include <functional>

namespace sotto::attacks {

// What shadows say of a model by its logits [records, classes] for the records of known membership.
using ShadowMeasure =
    std::function<nlohmann::json(const Shadows& shadows, const at::Tensor& logits, const Membership& membership)>;

// The measure of the run's last model, and under `baseline` that of the same federation without privacy. Without
// options.client that is the global model, or client 0's if the method has no global one. Shadows are kept beside the
// run, where another attack finds them.
nlohmann::json ask_shadows(const Target& target, const AttackOptions& options, const ShadowMeasure& measure);

}  // namespace sotto::attacks

// Low-rank adaptation (Hu et al., ICLR 2022): y = W x + b + B A x, of which only A [rank, in] and B [out, rank] are
// trained.
//
// A and B are linear layers beside the one they belong to, registered as its children `lora_a` and `lora_b`. So their
// per-example gradients are those of any linear layer, and what is clipped, released, broadcast and kept are their
// parameters under these names. B starts at zero: a fresh path changes nothing. There is no factor on B A: the learning
// rate does what it would do.
//
// Targets are whole parts of layers' names: "qkv" is every layer of that name, "attn" every linear layer of the
// attention, "blocks.0" those of the first block. A layer that is used several times has one path, used as often.
#pragma once

#include "models/model.h"

#include <ATen/core/Generator.h>

#include <string>

namespace sotto::models {

// Puts paths beside the targets, which are frozen themselves. Targets that name no linear layer, ranks above a layer's
// own, and tensors of the model's that have such names already are UserErrors.
void add_lora(Model& model, const LoraOptions& options, at::Generator init);

// Whether a parameter of this name is some path's A or B.
bool is_lora(const std::string& name);

// A state (Model::state()) in which every W is W + B A and A and B are gone: the same function, under the names that the
// model has without paths.
NamedTensors merge_lora(NamedTensors state);

}  // namespace sotto::models

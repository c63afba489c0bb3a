// A model's trainable parameters, layer by layer.
#pragma once

#include "models/model.h"

#include <cstdint>
#include <string>
#include <vector>

namespace sotto::models {

// The parameters of one layer: those whose names differ behind the last dot only ("conv1.weight", "conv1.bias").
struct LayerParameters {
  std::string name;
  NamedTensors parameters;  // the model's own tensors

  int64_t coordinates() const { return total_elements(parameters); }
};

// In the order of the flat vector: shared layers first, then personal ones. A layer that is partly personal is two.
std::vector<LayerParameters> trainable_layers(const Model& model);

}  // namespace sotto::models

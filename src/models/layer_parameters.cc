#include "models/layer_parameters.h"

namespace sotto::models {
namespace {

void add_layers(const NamedTensors& parameters, std::vector<LayerParameters>& layers) {
  const size_t first = layers.size();
  for (const NamedTensor& parameter : parameters) {
    const std::string layer = parameter.name.substr(0, parameter.name.rfind('.'));
    if (layers.size() == first || layers.back().name != layer) layers.push_back({layer, {}});
    layers.back().parameters.push_back(parameter);
  }
}

}  // namespace

std::vector<LayerParameters> trainable_layers(const Model& model) {
  std::vector<LayerParameters> layers;
  add_layers(model.shared_parameters(), layers);
  add_layers(model.personal_parameters(), layers);
  return layers;
}

}  // namespace sotto::models

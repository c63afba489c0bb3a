// What a pretrained backbone is: the JSON file beside its weights.
#pragma once

#include "data/origin.h"
#include "models/options.h"

#include <nlohmann/json_fwd.hpp>

#include <optional>
#include <string>
#include <vector>

namespace sotto::models {

struct PretrainedCard {
  ModelOptions model;  // its architecture; weights = the card's own name
  std::string dataset;
  data::Origin origin = {};  // the records that it was trained on, and those that the weights it began with were
  std::vector<std::string> classes;
  int64_t image_size = 0;
  int64_t epochs = 0;   // trained so far
  int64_t planned = 0;  // fewer were trained if the work was interrupted
  uint64_t seed = 0;
  double accuracy = 0.0;  // on held-out records
};

nlohmann::json to_json(const PretrainedCard& card);

// The card of pretrained weights, or nothing if there are none of that name. A damaged card is a UserError.
std::optional<PretrainedCard> read_pretrained_card(const std::string& name);

// The same for a name or a file, as model.weights and data.features give them; nothing for weights from elsewhere.
std::optional<PretrainedCard> find_pretrained_card(const std::string& name_or_path);

}  // namespace sotto::models

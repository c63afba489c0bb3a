#include "models/weights/pretrained_card.h"

#include "base/error.h"
#include "base/files.h"
#include "models/weights/weight_store.h"
#include "settings/choice_json.h"

#include <nlohmann/json.hpp>

namespace sotto::models {

nlohmann::json to_json(const PretrainedCard& card) {
  const auto& model = card.model;
  return {{"model",
           {{"name", model.name},
            {"norm", model.norm},
            {"hidden", model.hidden},
            {"width", model.width},
            {"depth", model.depth},
            {"heads", model.heads},
            {"patch", model.patch}}},
          {"dataset", card.dataset},
          {"origin", data::to_json(card.origin)},
          {"classes", card.classes},
          {"image_size", card.image_size},
          {"epochs", card.epochs},
          {"planned_epochs", card.planned},
          {"seed", card.seed},
          {"accuracy", card.accuracy}};
}

std::optional<PretrainedCard> read_pretrained_card(const std::string& name) {
  const fs::path path = pretrained_folder() / (name + ".json");
  if (name.find('/') != name.npos || !fs::exists(path)) return std::nullopt;
  try {
    const auto json = nlohmann::json::parse(read_file(path));
    PretrainedCard card;
    const auto& model = json.at("model");
    model.at("name").get_to(card.model.name);
    model.at("norm").get_to(card.model.norm);
    model.at("hidden").get_to(card.model.hidden);
    model.at("width").get_to(card.model.width);
    model.at("depth").get_to(card.model.depth);
    model.at("heads").get_to(card.model.heads);
    model.at("patch").get_to(card.model.patch);
    card.model.weights = name;
    json.at("dataset").get_to(card.dataset);
    card.origin = json.contains("origin") ? data::origin_from(json.at("origin")) : data::named_origin(card.dataset);
    json.at("classes").get_to(card.classes);
    json.at("image_size").get_to(card.image_size);
    json.at("epochs").get_to(card.epochs);
    json.at("planned_epochs").get_to(card.planned);
    json.at("seed").get_to(card.seed);
    json.at("accuracy").get_to(card.accuracy);
    return card;
  } catch (const nlohmann::json::exception& error) {
    fail_user("{}: damaged description of pretrained weights ({}); delete it and run `sotto pretrain` again",
              path.string(), error.what());
  }
}

std::optional<PretrainedCard> find_pretrained_card(const std::string& name_or_path) {
  if (auto card = read_pretrained_card(name_or_path)) return card;
  const fs::path path = name_or_path;
  std::error_code error;
  const bool is_ours = path.extension() == ".pt" && fs::exists(path, error) &&
                       fs::equivalent(fs::absolute(path).parent_path(), pretrained_folder(), error);
  return is_ours ? read_pretrained_card(path.stem().string()) : std::nullopt;
}

}  // namespace sotto::models

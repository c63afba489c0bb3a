// Choices as JSON: their words.
#pragma once

#include "settings/choice.h"

#include <nlohmann/json.hpp>

namespace nlohmann {

template <sotto::settings::HasChoices E>
struct adl_serializer<E> {
  static void to_json(json& value, E choice) { value = sotto::settings::word(choice); }
  static void from_json(const json& value, E& choice) {
    choice = sotto::settings::from_word<E>(value.get<std::string>());
  }
};

}  // namespace nlohmann

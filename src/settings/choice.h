// Settings that are one of a few words: an enum, and its words in one table.
//
//   enum class Colour { kRed, kBlue };
//   constexpr auto choices(Colour) { return std::to_array<settings::Choice<Colour>>({{Colour::kRed, "red"}, …}); }
//
// Then section.choice("colour", Colour::kRed) reads one, and word(colour) writes it.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace sotto::settings {

template <typename E>
struct Choice {
  E value;
  const char* word;
};

template <typename E>
concept HasChoices = requires(E value) {
  choices(value);
};

template <HasChoices E>
std::string word(E value) {
  for (const auto& choice : choices(E{})) {
    if (choice.value == value) return choice.word;
  }
  return {};
}

template <HasChoices E>
std::vector<std::string> words() {
  std::vector<std::string> all;
  for (const auto& choice : choices(E{})) all.emplace_back(choice.word);
  return all;
}

// `text` must be one of the words.
template <HasChoices E>
E from_word(std::string_view text) {
  for (const auto& choice : choices(E{})) {
    if (text == choice.word) return choice.value;
  }
  return E{};
}

}  // namespace sotto::settings

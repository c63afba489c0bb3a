#include "base/log.h"
#include "library/boundary.h"

#include <fmt/format.h>

namespace sotto {

const char* version() {
  static const std::string text =
      fmt::format("{}.{}.{}", SOTTO_VERSION_MAJOR, SOTTO_VERSION_MINOR, SOTTO_VERSION_PATCH);
  return text.c_str();
}

at::Tensor find(const Tensors& tensors, std::string_view name) {
  for (const auto& [own, value] : tensors) {
    if (own == name) return value;
  }
  return {};
}

void show_messages(bool shown) {
  set_log_level(shown ? LogLevel::kNormal : LogLevel::kQuiet);
}

NamedTensors to_engine(const Tensors& tensors) {
  NamedTensors values;
  values.reserve(tensors.size());
  for (const auto& [name, value] : tensors) values.push_back({name, value});
  return values;
}

Tensors to_public(const NamedTensors& tensors) {
  Tensors values;
  values.reserve(tensors.size());
  for (const auto& [name, value] : tensors) values.emplace_back(name, value);
  return values;
}

privacy::Adjacency to_engine(Adjacency adjacency) {
  switch (adjacency) {
    case Adjacency::kAddRemove:
      return privacy::Adjacency::kAddRemove;
    case Adjacency::kZeroOut:
      return privacy::Adjacency::kZeroOut;
    case Adjacency::kReplace:
      return privacy::Adjacency::kReplace;
    case Adjacency::kReplaceSameLabel:
      return privacy::Adjacency::kReplaceSameLabel;
  }
  fail_user("there is no such adjacency: {}", static_cast<int>(adjacency));
}

}  // namespace sotto

#include "privacy/event_json.h"

#include "base/error.h"
#include "privacy/terms.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

namespace sotto::privacy {
namespace {

using nlohmann::json;

constexpr size_t kLongestText = 1 << 16;
constexpr int64_t kMostSteps = 1 << 30;  // of one release

class Reader {
 public:
  explicit Reader(const json& value) : value_(value) {}

  int64_t integer(const char* key) const {
    const json& found = at(key);
    if (!found.is_number_integer()) refuse(key);
    return found.get<int64_t>();
  }
  double number(const char* key) const {
    const json& found = at(key);
    if (!found.is_number() || !std::isfinite(found.get<double>())) refuse(key);
    return found.get<double>();
  }
  std::string text(const char* key) const {
    const json& found = at(key);
    if (!found.is_string() || found.get_ref<const std::string&>().size() > kLongestText) refuse(key);
    return found.get<std::string>();
  }
  template <settings::HasChoices E>
  E choice(const char* key) const {
    const std::string word = text(key);
    const auto words = settings::words<E>();
    if (std::find(words.begin(), words.end(), word) == words.end()) refuse(key);
    return settings::from_word<E>(word);
  }

 private:
  [[noreturn]] static void refuse(const char* key) {
    fail_user("a release is not described as a ledger's row is: '{}' is missing or means nothing", key);
  }
  const json& at(const char* key) const {
    const auto found = value_.find(key);
    if (found == value_.end()) refuse(key);
    return *found;
  }

  const json& value_;
};

}  // namespace

json to_json(const Event& e) {
  return {{"round", e.round},
          {"client", e.client},
          {"observer", e.observer},
          {"what", e.what},
          {"mechanism", e.mechanism},
          {"why_unproven", e.why_unproven},
          {"noise_scale", e.noise_scale},
          {"sensitivity", e.sensitivity},
          {"sampling_rate", e.sampling_rate},
          {"batches", e.batches},
          {"steps", e.steps},
          {"slack", e.slack},
          {"claimed_by", e.claim.by},
          {"claimed_multiplier", e.claim.multiplier},
          {"claimed_steps", e.claim.steps},
          {"claimed_epsilon", e.claim.epsilon},
          {"adjacency", settings::word(e.neighbours.adjacency)},
          {"unit", settings::word(e.neighbours.unit)},
          {"generator", e.generator},
          {"parameters", e.parameters}};
}

Event event_from(const json& value) {
  if (!value.is_object()) fail_user("a release is not described as a ledger's row is");
  const Reader read(value);
  Event event{.round = read.integer("round"),
              .client = read.integer("client"),
              .observer = settings::word(read.choice<Observer>("observer")),
              .what = read.text("what"),
              .mechanism = read.text("mechanism"),
              .why_unproven = read.text("why_unproven"),
              .noise_scale = read.number("noise_scale"),
              .sensitivity = read.number("sensitivity"),
              .sampling_rate = read.number("sampling_rate"),
              .batches = read.integer("batches"),
              .steps = read.integer("steps"),
              .slack = read.number("slack"),
              .claim = {.by = read.text("claimed_by"),
                        .multiplier = read.number("claimed_multiplier"),
                        .steps = read.integer("claimed_steps"),
                        .epsilon = read.number("claimed_epsilon")},
              .neighbours = {read.choice<Adjacency>("adjacency"), read.choice<Unit>("unit")},
              .generator = read.text("generator"),
              .parameters = read.text("parameters")};
  const bool possible = event.noise_scale >= 0 && event.sensitivity >= 0 && event.sampling_rate > 0 &&
                        event.sampling_rate <= 1 && event.slack >= 0 && event.slack <= 1 && event.steps >= 1 &&
                        event.steps <= kMostSteps && event.batches >= 1 && event.batches <= kMostSteps &&
                        event.claim.steps >= 0 && event.claim.steps <= kMostSteps && event.claim.multiplier >= 0;
  if (!possible) fail_user("the release of '{}' has numbers that no mechanism has", event.what);
  return event;
}

}  // namespace sotto::privacy

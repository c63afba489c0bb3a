// The rows of a client's ledger that come with its upload.
#include "fuzz.h"
#include "privacy/event_json.h"
#include "privacy/ledger.h"

#include <nlohmann/json.hpp>

namespace {

using namespace sotto;
using nlohmann::json;

privacy::Event event() {
  return {.round = 1,
          .client = 0,
          .observer = "server",
          .what = "model",
          .mechanism = "gaussian",
          .noise_scale = 1.5,
          .sensitivity = 0.5,
          .sampling_rate = 0.1,
          .batches = 10,
          .steps = 3,
          .generator = "secure"};
}

}  // namespace

std::vector<std::string> fuzz::seeds() {
  const json row = privacy::to_json(event());
  json later = row;
  later["round"] = 2;
  later["why_unproven"] = "nobody knows";
  return {json::array({row}).dump(), json::array({row, later}).dump(), "[]"};
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return fuzz::attempt([&] {
    const json rows = json::parse(fuzz::bytes_of(data, size), nullptr, false);
    if (!rows.is_array()) return;
    privacy::Ledger ledger;
    for (const json& row : rows) {
      const privacy::Event read = privacy::event_from(row);
      if (privacy::event_from(privacy::to_json(read)) != read) throw std::logic_error("a row changes as it is written");
      ledger.spend(read);
    }
    ledger.verify_chain();
    ledger.tallies("server");
  });
}

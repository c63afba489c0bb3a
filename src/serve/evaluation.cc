#include "serve/evaluation.h"

#include "base/error.h"
#include "base/files.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cmath>

namespace sotto::serve {
namespace {

using nlohmann::json;

constexpr const char* kFile = "evaluation.json";

}  // namespace

json evaluation_json(const std::vector<ReleasedCount>& counts, int64_t records, int64_t asked) {
  const auto share = [&](double right) { return right / static_cast<double>(records); };
  json clients = json::array();
  double sum = 0;
  double variance = 0;
  for (const ReleasedCount& count : counts) {
    sum += share(static_cast<double>(count.right));
    variance += share(count.noise_stddev) * share(count.noise_stddev);
    clients.push_back({{"client", count.client},
                       {"right", count.right},
                       {"accuracy", share(static_cast<double>(count.right))},
                       {"noise_stddev", share(count.noise_stddev)}});
  }
  const auto answered = static_cast<double>(counts.size());
  return {{"records", records},
          {"asked", asked},
          {"accuracy", counts.empty() ? json(nullptr) : json(sum / answered)},
          {"noise_stddev", counts.empty() ? json(nullptr) : json(std::sqrt(variance) / answered)},
          {"clients", std::move(clients)}};
}

void write_evaluation(const fs::path& folder, const json& evaluation) {
  write_file_atomically(folder / kFile, evaluation.dump() + "\n");
}

std::optional<json> read_evaluation(const fs::path& folder) {
  if (!fs::exists(folder / kFile)) return std::nullopt;
  json value = json::parse(read_file(folder / kFile), nullptr, false);
  if (!value.is_object() || !value.contains("accuracy")) fail_user("{} is damaged", (folder / kFile).string());
  return value;
}

std::string describe_evaluation(const json& evaluation) {
  if (evaluation["accuracy"].is_null()) return "none of the clients has said how good the model is";
  return fmt::format(
      "{:.1f} % of the held-out records right, ± {:.1f} % by the noise; {} of {} clients, {} records each",
      100 * evaluation["accuracy"].get<double>(), 100 * evaluation["noise_stddev"].get<double>(),
      evaluation["clients"].size(), evaluation["asked"].dump(), evaluation["records"].dump());
}

}  // namespace sotto::serve

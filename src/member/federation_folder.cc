#include "member/federation_folder.h"

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "io/safetensors.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace sotto::member {
namespace {

using nlohmann::json;

constexpr const char* kFederations = "federations";
constexpr const char* kPlan = "plan.json";
constexpr const char* kRounds = "metrics.jsonl";
constexpr const char* kBroadcast = "broadcast.safetensors";
constexpr const char* kFinal = "final.safetensors";
constexpr const char* kUnreported = "unreported.json";
constexpr const char* kRound = "round";

void write_broadcast(const fs::path& file, const methods::Broadcast& broadcast) {
  io::write_safetensors(file, {.tensors = broadcast.values, .metadata = {{kRound, std::to_string(broadcast.round)}}});
}

}  // namespace

FederationFolder::FederationFolder(const fs::path& home, const std::string& short_hash)
    : path_(home / kFederations / short_hash) {}

std::vector<FederationFolder> FederationFolder::all(const fs::path& home) {
  std::vector<FederationFolder> folders;
  if (!fs::exists(home / kFederations)) return folders;
  for (const auto& entry : fs::directory_iterator(home / kFederations)) {
    if (fs::exists(entry.path() / kPlan)) folders.emplace_back(home, entry.path().filename().string());
  }
  std::sort(folders.begin(), folders.end(), [](const auto& a, const auto& b) { return a.path_ < b.path_; });
  return folders;
}

void FederationFolder::begin(const federation::FederationPlan& plan) const {
  make_folder(path_);
  write_file_atomically(path_ / kPlan, plan.text() + "\n");
}

federation::FederationPlan FederationFolder::plan() const {
  return federation::FederationPlan(trim(read_file(path_ / kPlan)));
}

void FederationFolder::add_round(const json& line) const {
  append_line(path_ / kRounds, line.dump());
}

std::vector<json> FederationFolder::rounds() const {
  std::vector<json> lines;
  if (!fs::exists(path_ / kRounds)) return lines;
  for (const std::string& line : split(read_file(path_ / kRounds), '\n')) {
    json value = json::parse(line, nullptr, false);
    if (value.is_object()) lines.push_back(std::move(value));
  }
  return lines;
}

void FederationFolder::keep_broadcast(const methods::Broadcast& broadcast) const {
  write_broadcast(path_ / kBroadcast, broadcast);
}

void FederationFolder::keep_final(const methods::Broadcast& broadcast) const {
  write_broadcast(path_ / kFinal, broadcast);
  fs::remove(path_ / kBroadcast);
}

bool FederationFolder::is_over() const {
  return fs::exists(path_ / kFinal);
}

std::optional<methods::Broadcast> FederationFolder::last_broadcast() const {
  while (true) {
    const fs::path file = path_ / (is_over() ? kFinal : kBroadcast);
    if (!fs::exists(file)) return std::nullopt;
    try {
      const io::SafeTensors content = io::read_safetensors(file);
      return methods::Broadcast{std::stoll(content.metadata.at(kRound)), clone(content.tensors)};
    } catch (const UserError&) {
      if (fs::exists(file)) throw;  // otherwise the final one has taken its place
    }
  }
}

void FederationFolder::keep_result(const json& result) const {
  write_file_atomically(path_ / kUnreported, result.dump() + "\n");
}

json FederationFolder::unreported_result() const {
  if (!fs::exists(path_ / kUnreported)) return nullptr;
  return json::parse(read_file(path_ / kUnreported));
}

void FederationFolder::forget_result() const {
  fs::remove(path_ / kUnreported);
}

}  // namespace sotto::member

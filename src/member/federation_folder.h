// What a home keeps of a federation that it takes part in, besides its ledger and its personal state.
//
//   HOME/federations/PLAN/plan.json              what was agreed to
//   HOME/federations/PLAN/metrics.jsonl          a line a round, for the owner: what the model at hand achieves
//   HOME/federations/PLAN/broadcast.safetensors  what the last round began from, until the federation is over
//   HOME/federations/PLAN/final.safetensors      the last broadcast
//   HOME/federations/PLAN/unreported.json        the result, from the end of the federation until the owner was told
#pragma once

#include "federation/federation_plan.h"
#include "methods/method.h"

#include <nlohmann/json_fwd.hpp>

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace sotto::member {

class FederationFolder {
 public:
  FederationFolder(const std::filesystem::path& home, const std::string& short_hash);
  explicit FederationFolder(std::filesystem::path folder) : path_(std::move(folder)) {}
  // Of all federations that the home has joined, by name.
  static std::vector<FederationFolder> all(const std::filesystem::path& home);

  const std::filesystem::path& path() const { return path_; }
  std::string name() const { return path_.filename().string(); }

  // Makes the folder if it is not there.
  void begin(const federation::FederationPlan& plan) const;
  federation::FederationPlan plan() const;

  void add_round(const nlohmann::json& line) const;
  // Its lines; one that was cut off by a crash is not there.
  std::vector<nlohmann::json> rounds() const;

  void keep_broadcast(const methods::Broadcast& broadcast) const;
  void keep_final(const methods::Broadcast& broadcast) const;
  bool is_over() const;
  // The last one that is kept; nothing before the first round.
  std::optional<methods::Broadcast> last_broadcast() const;

  // So that a client that dies at the very end, when the server may be gone, can still tell its owner.
  void keep_result(const nlohmann::json& result) const;
  nlohmann::json unreported_result() const;  // null if there is none
  void forget_result() const;

 private:
  std::filesystem::path path_;
};

}  // namespace sotto::member

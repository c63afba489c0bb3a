// A client's whole part in a federation: from the first call to the server to its personal model. What it keeps of it at
// home, member/federation_folder.h says.
#pragma once

#include "member/member.h"
#include "remote/client.h"

#include <nlohmann/json_fwd.hpp>

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

namespace sotto::remote {

struct SessionRound {
  int64_t round = 0;
  bool sent = false;
  bool evaluation = false;  // after the last round: what was sent says how good the model is
  std::string why;          // nothing was sent
  federation::ClientScore score;
  double spent_epsilon = 0;
};

struct SessionOptions {
  std::filesystem::path home;
  std::string address;    // instead of the policy's
  bool insecure = false;  // without certificates, on the loopback interface
  bool evaluates = true;  // after every round, at home
  double patience = 600;  // seconds without the server, until it is given up
  std::function<bool()> stop;
  // Shown the plan and its cost before the server hears of us and anything is written; false: do not join.
  std::function<bool(const federation::FederationPlan& plan, const member::Prospect& prospect)> agree;
  std::function<void(const SessionRound&)> round_done;
};

struct SessionResult {
  bool finished = false;  // false: the owner did not agree, or it was stopped
  int64_t participations = 0;
  federation::ClientScore score;
  double spent_epsilon = 0;
  std::filesystem::path folder;  // of the federation at home
};

// A federation of which the owner was not told the result yet, because the process died, is told of first, without the
// server.
SessionResult take_part(const SessionOptions& options);
nlohmann::json to_json(const SessionResult& result);
// The owner knows it.
void mark_reported(const SessionResult& result);

}  // namespace sotto::remote

// A whole run audited once: many canaries, each in or out by a coin of its own, and guesses about the coins.
//
// Canaries are records with a label that is not theirs, dealt to all clients. The attacker is the server: it sees every
// upload, knows what it sent before, and scores a canary by what the uploads of the client that may hold it say
// (canary_score.h). Guesses become a bound by one_run.h.
#pragma once

#include "audit/one_run.h"
#include "federation/setup.h"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>

namespace sotto::audit {

struct WholeRunOptions {
  int64_t canaries = 1000;  // at most half of every client's records
  uint64_t seed = 1;        // of the coins
  double alpha = 0.05;
  int threads = 1;
};

struct WholeRunOutcome {
  OneRunBound bound;
  int64_t canaries = 0;
  double delta = 0;
  double claimed = 0;  // the largest of any client, for the whole run
  double proven = 0;
  double seconds = 0;

  nlohmann::json to_json() const;
};

// Runs the federation of `setup` with canaries among its records. Record-level privacy only: a setup that protects
// clients, or whose server is trusted, is a UserError.
WholeRunOutcome audit_whole_run(const federation::Setup& setup, const WholeRunOptions& options);

}  // namespace sotto::audit

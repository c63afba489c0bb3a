// What a method releases of one client, in two worlds that differ in a record (or in the client).
//
// Works for any method of the catalogue: whatever the observer sees of a round, by name. Where noise is added by the
// clients it is one client's upload; where a trusted server adds it, the model that the server sends back.
#pragma once

#include "audit/canary.h"
#include "audit/case.h"
#include "federation/setup.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace sotto::audit {

// What the client's other records are, in both worlds.
enum class Others {
  kAsTheyAre,
  kBlank,  // no gradient where each record is bounded by itself: chance decides about the canary's alone
  kZero    // next to none elsewhere, so that the canary decides where an update goes
};

struct ReleaseOptions {
  int64_t client = 0;
  std::optional<std::string> canary = {};  // by name; otherwise the pair that the pilots tell apart best
  int64_t pilots = 4;                      // per candidate
  Others others = Others::kAsTheyAre;
  std::optional<methods::Broadcast> broadcast = {};  // otherwise the first of the run
};

// The case of one release in the first round of `setup`, which must outlive it. δ without [privacy] is 1e-5.
// A method that releases nothing is a UserError.
Case release_case(const std::shared_ptr<const federation::Setup>& setup, const ReleaseOptions& options);

}  // namespace sotto::audit

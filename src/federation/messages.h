// What the server of a federation between machines and its clients say to each other, whatever carries it.
#pragma once

#include <cstdint>
#include <string>

namespace sotto::federation {

// The answer to a client that takes its place.
struct Joined {
  int64_t client = 0;
  // The last upload that they have offered; round 0 if there is none.
  int64_t seen_round = 0;
  std::string seen_digest;
};

// What a client is to do next.
struct Work {
  enum class Kind { kNothing, kRound, kOver };
  Kind kind = Kind::kNothing;
  int64_t round = 0;        // to be worked on; kOver: the last one
  std::string digest = {};  // of the broadcast to begin from; kOver: the final one
  int64_t bytes = 0;
  int64_t durable_round = 0;  // uploads of rounds up to this one are not needed any more
};

// An upload that a client would send.
struct Offer {
  int64_t round = 0;
  std::string key;     // FederationPlan::upload_key
  std::string digest;  // SHA-256 of the bytes
  int64_t bytes = 0;
  std::string releases;  // rows of the client's ledger that it rests on, as JSON
};

enum class Verdict {
  kSend,    // from `offset` on
  kStored,  // all of it is here
  kLate,    // the round is over
  kBusy,    // too many uploads at a time; come back
  kRefused  // `reason` says why
};

struct Answer {
  Verdict verdict = Verdict::kSend;
  int64_t offset = 0;
  std::string reason = {};
};

}  // namespace sotto::federation

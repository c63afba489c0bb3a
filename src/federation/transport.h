// How a broadcast reaches clients and their answers come back.
#pragma once

#include "federation/client_score.h"
#include "methods/method.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace sotto::federation {

// One client's answer: an upload, or nothing, or its failure.
struct Reply {
  int64_t client = 0;
  std::optional<privacy::Upload> upload;
  std::string failure;          // one line; empty if the client did its work
  std::string abstained;        // why the client took no part: its budget is spent
  methods::LocalReport report;  // simulation only
};

// Carries messages, and knows nothing of what they mean. Answers come in the order of the clients asked, one call at a
// time, and wait for their turn in bounded memory.
class Transport {
 public:
  virtual ~Transport() = default;
  // The broadcast is that of the round before: it opens round broadcast.round + 1.
  virtual void exchange(const std::vector<int64_t>& cohort, const methods::Broadcast& broadcast,
                        const std::function<void(Reply&&)>& accept) = 0;
  // What the global model makes of all held-out records, by whoever holds them.
  virtual Predictions test(const methods::Broadcast& broadcast) = 0;
  // Asks clients how good their models are.
  virtual void evaluate(const std::vector<int64_t>& clients, const methods::Broadcast& broadcast,
                        const std::function<void(ClientScore&&)>& accept) = 0;
};

}  // namespace sotto::federation

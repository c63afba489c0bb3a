// How a round's broadcast reaches its clients and their replies come back.
#pragma once

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

class Transport {
 public:
  virtual ~Transport() = default;
  // Sends `broadcast` to the cohort and calls `accept` once per client, in cohort order, one call at a time. Replies
  // wait for their turn in bounded memory.
  virtual void exchange(int64_t round, const std::vector<int64_t>& cohort, const methods::Broadcast& broadcast,
                        const std::function<void(Reply&&)>& accept) = 0;
};

}  // namespace sotto::federation

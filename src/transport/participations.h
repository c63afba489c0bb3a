// In how many rounds each client has been asked so far.
#pragma once

#include "federation/cohort.h"

#include <cstdint>
#include <vector>

namespace sotto::transport {

class Participations {
 public:
  // `cohorts` must outlive it.
  Participations(const federation::CohortSchedule& cohorts, int64_t clients)
      : cohorts_(cohorts), asked_(static_cast<size_t>(clients)) {}

  void count_up_to(int64_t round) {
    for (; counted_ < round; ++counted_) {
      for (const int64_t client : cohorts_.cohort(counted_ + 1)) ++asked_[static_cast<size_t>(client)];
    }
  }
  int64_t of(int64_t client) const { return asked_[static_cast<size_t>(client)]; }

 private:
  const federation::CohortSchedule& cohorts_;
  int64_t counted_ = 0;  // rounds
  std::vector<int32_t> asked_;
};

}  // namespace sotto::transport

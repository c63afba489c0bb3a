// The time of day, for rows and rates; whoever measures how long something takes uses a steady clock.
#pragma once

#include <chrono>
#include <cstdint>

namespace sotto {

// Since 1970.
inline int64_t seconds_now() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace sotto

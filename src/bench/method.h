// What a round of one method costs, in rounds of another. Times are processor time, since only one of the two computes at
// a time and a busy machine would drown small differences of the clock.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace sotto::bench {

struct MethodOptions {
  std::string method;
  std::string against;
  std::string config = {};                          // a TOML file both can run; "" = a small private federation
  std::vector<std::string> overrides = {};          // a.b=value; method.* is for `method`, anything else for both
  std::vector<std::string> against_overrides = {};  // method.*=value, for `against`
  int64_t repeats = 200;                            // of two rounds each
  int threads = 1;                                  // clients trained at once
};

// What was measured (method, against, repeats, threads); seconds_per_round and against_seconds_per_round; the median
// ratio with its 95 % interval (ratio_low, ratio_high) and interquartile spread; wall_ratio, by the clock. Methods that
// cannot be compared are a UserError. Sets the process's intra-op threads to one.
nlohmann::json measure_method(const MethodOptions& options);

}  // namespace sotto::bench

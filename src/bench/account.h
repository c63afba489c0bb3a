// How long the accountants take: medians of repeated questions.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace sotto::bench {

// pld_10000_steps_ms, exact_us.
nlohmann::json measure_accountants();

}  // namespace sotto::bench

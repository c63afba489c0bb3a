// Several runs side by side: which settings differ, and which differences are more than luck.
#pragma once

#include "config/run_spec.h"

#include <nlohmann/json_fwd.hpp>

#include <vector>

namespace sotto::report {

// Runs that differ only in their seed are one group; the seed is the unit of the test. `documents` are run_document()s
// and `specs` their settings, in the same order.
//
//   {"groups": [{"label": the settings that tell it from the others, "series": the same without ε, "runs": [index],
//                "seeds", "claimed_epsilon", "proven_epsilon" (largest of any client and seed; null: infinite),
//                "basis": "proven" if that ε is so in each of its finished runs, else "simulated"}],
//    "metrics": {NAME: {"values": [[per run of each group]], "mean": [...], "std": [...],
//                       "p": [[two-sided Mann–Whitney, row against column; null where it is not defined]]}}}
//
// Unfinished runs are in their group but have no values.
nlohmann::json compare(const std::vector<nlohmann::json>& documents, const std::vector<config::RunSpec>& specs);

}  // namespace sotto::report

// What each client has left, and how long it lasts.
#pragma once

#include "report/spending.h"

namespace sotto::report {

// One row per listed client: client, budget, spent, left (null: infinite), and `rounds`: how many more rounds it can
// afford if each costs what its last one did, at most kMostRounds; `more` if it could afford that many. Where nothing
// is spent or no budget is kept, `rounds` is null and `why` says so. A client that has released nothing yet pays what
// its neighbour did. Held to what the paper claims if variant = "paper", as the ledger is.
//
// `price` holds the rows of the run whose rounds are to be paid for: those of the same run, or of one with another
// method under the same adjacency and unit; otherwise a UserError.
nlohmann::json budget_board(const config::RunSpec& spec, const std::vector<privacy::Event>& events,
                            const std::vector<privacy::Event>& price, privacy::GuaranteeCache& cache);

inline constexpr int64_t kMostRounds = 100000;

}  // namespace sotto::report

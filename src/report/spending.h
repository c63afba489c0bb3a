// What clients have spent, round by round, from the rows of a ledger.
#pragma once

#include "config/run_spec.h"
#include "privacy/spending.h"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace sotto::report {

// Clients beyond this one are not listed.
inline constexpr int64_t kListedClients = 200;

// What each of the first `clients` clients has released up to and including a round, in the eyes of an observer.
std::vector<privacy::Tally> tallies_after(const std::vector<privacy::Event>& events, const std::string& observer,
                                          int64_t clients, int64_t round);

// For every observer that sees something of its own: names, rounds, and a curve for each group of clients with equal
// histories and budgets: {"observers": [...], "rounds": [...], "curves": [{"clients": [...], "budget", "claimed":
// [...], "proven": [...]}]}. `events` in round order. Long runs are sampled, evenly and with the last round among them,
// the more sparsely the more different tallies there are to compose. Infinite ε are null.
nlohmann::json spending_over_time(const config::RunSpec& spec, const std::vector<privacy::Event>& events,
                                  privacy::GuaranteeCache& cache);

// The last noise that fell on each group of numbers: what, group, coordinates, and over clients the least and most
// sensitivity and stddev.
nlohmann::json noise_by_group(const std::vector<privacy::Event>& events);

// The kinds of release: what, first observer, mechanism, rows, clients, least and most noise multiplier, and why
// nothing can be proven of them.
nlohmann::json release_kinds(const std::vector<privacy::Event>& events);

}  // namespace sotto::report

// One run as the page knows it: everything in a run directory that can be looked at, as one JSON document.
#pragma once

#include "artifacts/run_directory.h"
#include "report/spending.h"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <string>

namespace sotto::report {

// The settings of the run in `folder`.
config::RunSpec spec_of(const artifacts::RunReader& run);

// `id` names the run on the page. What the folder does not hold is null. Scores of single clients are rounded to four
// digits and those of clients beyond kListedClients left out; everything else is as it was written.
//
//   id, name, state, hash, config (resolved), config_toml, environment, summary, rounds_done
//   rounds       columns of metrics.jsonl: round, train_loss, seconds, cohort, uploads, abstained, diverged
//   evaluations  {"round": [...], "measures": {NAME: {mean, std, worst, global, clients, values}}, "domains": {...}}
//   privacy      {"terms", "views" (spending.h), "noise", "kinds", "rows", "basis", "basis_why"}, or {"problem": why
//                there is none, "basis"}
//   partition    partition.json; picture: partition.png as a data URI if there is no partition.json
//   curve        {"curve", "x", "y", "clients"} of a method with a clipping curve
//   audit, attacks, embedding    files that other tools leave (docs/run-directory.md)
nlohmann::json run_document(const artifacts::RunReader& run, const std::string& id, privacy::GuaranteeCache& cache);

}  // namespace sotto::report

// A run as tables of comma-separated values: a header, then one row per observation. Quoted as RFC 4180 has it; what is
// not known is an empty field, an ε of ∞ is `inf`.
#pragma once

#include "artifacts/run_directory.h"
#include "config/run_spec.h"

#include <cstdint>
#include <string>

namespace sotto::artifacts {

struct CsvTable {
  std::string text;  // header and rows, each ended by a line feed
  int64_t rows = 0;
};

// One row per evaluated round and client: its scores, and the ε it has spent until then.
CsvTable clients_csv(const RunReader& run, const config::RunSpec& spec);

// One row per round: what metrics.jsonl holds, and the largest ε of any client.
CsvTable rounds_csv(const RunReader& run, const config::RunSpec& spec);

// One row per release, as the ledger has it; client -1 is everyone.
CsvTable ledger_csv(const RunReader& run);

}  // namespace sotto::artifacts

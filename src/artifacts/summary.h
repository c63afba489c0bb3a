// summary.json: the result of a finished run in one page, with a checksum of its own.
#pragma once

#include "artifacts/run_summary.h"
#include "config/run_spec.h"
#include "privacy/ledger.h"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <optional>
#include <vector>

namespace sotto::artifacts {

// From the lines of metrics.jsonl and the ledger.
RunSummary make_summary(const config::RunSpec& spec, const std::vector<nlohmann::json>& rounds,
                        const privacy::Ledger& ledger);

std::filesystem::path summary_file(const std::filesystem::path& run);

// What the file holds: the summary, and a checksum of it.
nlohmann::json summary_document(const RunSummary& summary);

// The summary of a run directory; absent while the run is not finished. One that is damaged, does not fit its checksum
// or stands without a ledger is a UserError. Earlier versions of Sotto wrote no checksum.
std::optional<RunSummary> read_summary(const std::filesystem::path& run);

}  // namespace sotto::artifacts

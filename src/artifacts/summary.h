// summary.json: the result of a finished run in one page, with a checksum of its own.
#pragma once

#include "config/run_spec.h"
#include "methods/method.h"
#include "privacy/ledger.h"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <optional>
#include <vector>

namespace sotto::artifacts {

// From the lines of metrics.jsonl and the ledger. Fields as documented in docs/run-directory.md.
nlohmann::json make_summary(const config::RunSpec& spec, const std::vector<nlohmann::json>& rounds,
                            const privacy::Ledger& ledger);

std::filesystem::path summary_file(const std::filesystem::path& run);

// The summary of a run directory; absent while the run is not finished. One that is damaged, does not fit its checksum
// or stands without a ledger is a UserError. Earlier versions of Sotto wrote no checksum.
std::optional<nlohmann::json> read_summary(const std::filesystem::path& run);

}  // namespace sotto::artifacts

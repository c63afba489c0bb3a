// summary.json: the result of a finished run in one page.
#pragma once

#include <vector>

#include <nlohmann/json.hpp>

#include "config/run_spec.h"
#include "methods/method.h"
#include "privacy/ledger.h"

namespace sotto::artifacts {

// From the lines of metrics.jsonl and the ledger. Fields as documented in docs/run-directory.md.
nlohmann::json make_summary(const config::RunSpec& spec, const std::vector<nlohmann::json>& rounds,
                            const privacy::Ledger& ledger);

}  // namespace sotto::artifacts

// summary.json: the result of a finished run in one page.
#pragma once

#include "config/run_spec.h"
#include "methods/method.h"
#include "privacy/ledger.h"

#include <nlohmann/json.hpp>

#include <vector>

namespace sotto::artifacts {

// From the lines of metrics.jsonl and the ledger. Fields as documented in docs/run-directory.md.
nlohmann::json make_summary(const config::RunSpec& spec, const std::vector<nlohmann::json>& rounds,
                            const privacy::Ledger& ledger);

}  // namespace sotto::artifacts

// What a run has cost its clients in privacy: the `privacy` part of summary.json.
#pragma once

#include "artifacts/run_summary.h"
#include "config/run_spec.h"
#include "privacy/ledger.h"
#include "privacy/spending.h"

#include <nlohmann/json.hpp>

#include <string>

namespace sotto::artifacts {

// Whom the run promises to protect its clients from, and at which δ. Without [privacy] nothing is noised: the server,
// and any δ gives the same answer.
std::string declared_observer(const config::RunSpec& spec);
double accounted_delta(const config::RunSpec& spec);
// What clients spend in these terms, from nothing on.
privacy::Spending declared_spending(const config::RunSpec& spec);

// {"basis", "basis_why"} of a run whose noise came from `generator`, in the words of Ledger::generator.
nlohmann::json basis_fields(const config::RunSpec& spec, const std::string& generator);

PrivacySummary privacy_summary(const config::RunSpec& spec, const privacy::Ledger& ledger);

}  // namespace sotto::artifacts

#include "member/status.h"

#include "base/error.h"
#include "base/files.h"
#include "base/json_number.h"
#include "member/federation_folder.h"
#include "member/policy.h"
#include "privacy/guarantee.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <optional>
#include <string>

namespace sotto::member {
namespace {

using nlohmann::json;

constexpr int64_t kSelf = 0;  // in its home's ledger everybody is the only client

json federation_status(const FederationFolder& folder, const privacy::Ledger& ledger) {
  const federation::FederationPlan plan = folder.plan();
  const json progress = json::parse(ledger.note("plan " + plan.hash()), nullptr, false);
  if (!progress.is_object()) return nullptr;
  const json& sealed = progress.at("outbox");
  json outbox = nullptr;
  if (!sealed.is_null()) outbox = {{"round", sealed.at("round")}, {"bytes", sealed.at("bytes")}};
  return {{"plan", plan.hash()},
          {"method", plan.setup().spec().method},
          {"rounds", plan.setup().spec().rounds},
          {"client", progress.at("client")},
          {"participations", progress.at("participations")},
          {"most_participations", plan.setup().participations_of(progress.at("client").get<int64_t>())},
          {"last_round", std::min(progress.at("round").get<int64_t>(), plan.setup().spec().rounds)},
          {"outbox", std::move(outbox)}};
}

json federations(const fs::path& home, const privacy::Ledger& ledger) {
  json all = json::array();
  for (const FederationFolder& folder : FederationFolder::all(home)) {
    json status = federation_status(folder, ledger);
    if (!status.is_null()) all.push_back(std::move(status));
  }
  return all;
}

double spent_by(const privacy::Ledger& ledger, const privacy::PrivacyTerms& terms) {
  const auto tallies = ledger.tallies(settings::word(terms.observer));
  const auto found = tallies.find(kSelf);
  return found == tallies.end() ? 0.0 : found->second.proven(terms.delta);
}

}  // namespace

json home_status(const fs::path& folder) {
  const Policy policy = read_policy(folder);
  double spent = 0;
  json joined = json::array();
  // Before the first federation there is no ledger, and a home that has lost its own says so.
  if (fs::exists(folder / "ledger.sqlite") || fs::exists(folder / "ledger.mark")) {
    const privacy::Home home(folder);
    spent = spent_by(home.ledger(), home.terms());
    joined = federations(folder, home.ledger());
  }
  return {{"kind", "home"},
          {"folder", folder.string()},
          {"name", policy.name},
          {"server", policy.address},
          {"budget",
           {{"epsilon", policy.budget.epsilon},
            {"delta", policy.budget.delta},
            {"spent", number_or_null(spent)},
            {"left", std::max(0.0, policy.budget.epsilon - spent)},
            {"per_day", policy.per_day > 0 ? json(policy.per_day) : json(nullptr)}}},
          {"federations", std::move(joined)}};
}

}  // namespace sotto::member

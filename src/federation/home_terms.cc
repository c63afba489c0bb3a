#include "federation/home_terms.h"

#include "base/error.h"
#include "base/files.h"
#include "data/origin.h"

#include <ATen/ATen.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <string_view>
#include <vector>

namespace sotto::federation {
namespace {

std::string hash_of(const at::Tensor& rows) {
  const at::Tensor flat = rows.contiguous();
  return sha256(std::string_view(static_cast<const char*>(flat.data_ptr()), static_cast<size_t>(flat.nbytes())));
}

// Rows are those of the records that are left after limits: with these, the seed says which.
std::string dealing_of(const Setup& setup) {
  const data::DataOptions& options = setup.spec().data;
  const bool sampled = options.limit > 0 || options.test_limit > 0;
  nlohmann::json all = {options.limit, options.test_limit, sampled ? setup.spec().seed : 0, options.domains};
  for (int64_t client = 0; client < setup.partition().clients(); ++client) {
    const data::Shard shard = setup.partition().shard(client);
    all.push_back(hash_of(shard.train));
    all.push_back(hash_of(shard.test));
  }
  return sha256(all.dump());
}

bool trusts_a_server(const methods::ReleasePlan& plan) {
  return std::any_of(plan.begin(), plan.end(), [](const privacy::Channel& channel) {
    return channel.terms().mechanism == privacy::kTrustedMechanism;
  });
}

void require_all_affordable(const Setup& setup, privacy::Home& home, const std::string& run) {
  const std::string observer = settings::word(home.terms().observer);
  for (int64_t client = 0; client < setup.partition().clients(); ++client) {
    privacy::Tally planned;
    for (const privacy::Channel& channel : setup.plan_for(client)) {
      if (privacy::is_seen_by(channel.terms(), observer)) planned.add(channel.terms(), channel.times());
    }
    const double epsilon = home.ledger().epsilon_with(run, client, planned);
    const double budget = home.terms().budget_of(client);
    if (epsilon <= budget * (1 + 1e-9)) continue;
    fail_user("the home {} allows client {} ε = {:.4g} over all runs, and with this one it would be {:.4g}",
              home.folder().string(), client, budget, epsilon);
  }
}

}  // namespace

privacy::HomeRecords home_records(const Setup& setup) {
  std::vector<std::string> contents;
  const data::Origin origin = data::origin_of(setup.spec().data);
  for (const data::Part& part : origin) contents.push_back(part.content);
  std::sort(contents.begin(), contents.end());
  return {.name = origin.empty() ? setup.spec().data.name : data::describe(origin.front()),
          .content = sha256(nlohmann::json(contents).dump()),
          .dealt = dealing_of(setup),
          .clients = setup.partition().clients()};
}

void require_home_allows(const Setup& setup, privacy::Home& home, const std::string& run) {
  const privacy::PrivacyTerms& promised = home.terms();
  const methods::ReleasePlan plan = setup.plan_for(0);
  for (const privacy::Channel& channel : plan) {
    const privacy::Event& event = channel.terms();
    if (event.why_unproven.empty() || !privacy::is_seen_by(event, settings::word(promised.observer))) continue;
    fail_user("the home {} promises ε = {:.4g} against the {}, and {} releases '{}' of which nothing can be proven: {}",
              home.folder().string(), promised.least_budget(), settings::word(promised.observer), setup.spec().method,
              event.what, event.why_unproven);
  }
  const auto& stated = setup.spec().privacy;
  if (stated && stated->neighbours() != promised.neighbours()) {
    fail_user("the home {} promises {} of a {}, and the run states {} of a {}; set privacy.adjacency and privacy.unit",
              home.folder().string(), privacy::to_text(promised.adjacency), settings::word(promised.unit),
              privacy::to_text(stated->adjacency), settings::word(stated->unit));
  }
  if (trusts_a_server(plan)) require_all_affordable(setup, home, run);
}

}  // namespace sotto::federation

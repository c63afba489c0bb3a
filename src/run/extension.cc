#include "run/extension.h"

#include "artifacts/run_directory.h"
#include "base/error.h"
#include "base/files.h"
#include "base/shell_word.h"
#include "federation/state_store.h"

#include <fmt/format.h>

#include <set>
#include <string>
#include <tuple>

namespace sotto::run {
namespace {

// The first release whose noise would be another one with the rounds of `longer`; "" if there is none.
std::string differing_release(const federation::Setup& begun, const federation::Setup& longer, int64_t client) {
  const methods::ReleasePlan before = begun.plan_for(client), after = longer.plan_for(client);
  if (before.size() != after.size()) return before.empty() ? "" : before.front().terms().what;
  for (size_t i = 0; i < before.size(); ++i) {
    if (before[i].terms() != after[i].terms()) return before[i].terms().what;
  }
  return "";
}

// Clients of which the same is declared have the same plan: one of each kind is asked.
std::string differing_release(const federation::Setup& begun, const federation::Setup& longer) {
  std::set<std::tuple<int64_t, int64_t, int64_t, double>> asked;
  for (int64_t client = 0; client < longer.partition().clients(); ++client) {
    const methods::ClientFacts before = begun.facts_of(client), after = longer.facts_of(client);
    if (!asked.insert({after.records, before.participations, after.participations, after.epsilon}).second) continue;
    const std::string what = differing_release(begun, longer, client);
    if (!what.empty()) return what;
  }
  return "";
}

}  // namespace

void require_extendable(const federation::Setup& setup, const fs::path& folder) {
  const artifacts::RunReader reader(folder);
  const config::RunSpec begun = reader.spec();
  const config::RunSpec& spec = setup.spec();
  if (begun.rounds == spec.rounds || begun.with_rounds(spec.rounds).hash() != spec.hash()) return;
  if (spec.rounds < begun.rounds) {
    fail_user("{} has {} rounds: a run can be extended, not shortened to {}; use another --out", folder.string(),
              begun.rounds, spec.rounds);
  }
  if (!reader.summary()) {
    fail_user("{} is not finished, and only finished runs can be extended; first: sotto run {} --resume",
              folder.string(), shell_word(folder.string()));
  }
  if (federation::states_were_discarded(artifacts::state_folder(folder))) {
    fail_user(
        "{} cannot be extended: its clients' states are gone (record.keep_states = \"none\", or sotto prune); use "
        "another --out",
        folder.string());
  }
  const std::string what = differing_release(setup.with(begun), setup);
  if (what.empty()) return;
  fail_user(
      "{} cannot be extended to {} rounds: the noise of '{}' was calibrated for {}, and they spend the whole budget; "
      "run "
      "it anew with another --out, and with --set most_rounds={} if it is to be extended later",
      folder.string(), spec.rounds, what, begun.planned_rounds(), spec.rounds);
}

}  // namespace sotto::run

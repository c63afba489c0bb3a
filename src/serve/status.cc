#include "serve/status.h"

#include "artifacts/find_runs.h"
#include "artifacts/privacy_section.h"
#include "artifacts/run_directory.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/files.h"
#include "base/json_number.h"
#include "io/database.h"
#include "serve/evaluation.h"
#include "serve/hub.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <limits>
#include <map>
#include <string>

namespace sotto::serve {
namespace {

using nlohmann::json;

constexpr const char* kDatabase = "server.sqlite";

int64_t durable_round(io::Database& database) {
  io::Statement query(database, "SELECT value FROM meta WHERE key = 'durable_round'");
  return query.next() ? std::stoll(query.text(0)) : 0;
}

std::string plan_hash(io::Database& database) {
  io::Statement query(database, "SELECT value FROM meta WHERE key = 'plan'");
  return query.next() ? query.text(0) : "";
}

json open_round(io::Database& database, int64_t durable) {
  io::Statement query(
      database,
      "SELECT round, cohort, (SELECT COUNT(*) FROM uploads WHERE uploads.round = rounds.round) FROM rounds "
      "ORDER BY round DESC LIMIT 1");
  if (!query.next() || query.integer(0) <= durable) return nullptr;
  return {{"round", query.integer(0)}, {"asked", json::parse(query.text(1)).size()}, {"reported", query.integer(2)}};
}

// When clients were heard of last; those that were not are not there.
std::map<int64_t, int64_t> heard_of(io::Database& database) {
  std::map<int64_t, int64_t> heard;
  io::Statement table(database, "SELECT 1 FROM sqlite_master WHERE name = 'presence'");
  if (!table.next()) return heard;
  io::Statement query(database, "SELECT client, heard FROM presence");
  while (query.next()) heard[query.integer(0)] = query.integer(1);
  return heard;
}

json members(io::Database& database, const config::RunSpec& spec, privacy::Spending& spending, bool running) {
  const std::map<int64_t, int64_t> heard = running ? heard_of(database) : std::map<int64_t, int64_t>();
  io::Statement query(database,
                      "SELECT client, name, revoked, seen_round, (SELECT COUNT(*) FROM uploads WHERE uploads.client = "
                      "members.client AND skipped = 0 AND round <= ?1) FROM members ORDER BY client");
  query.bind(1, spec.rounds);
  json all = json::array();
  while (query.next()) {
    const auto found = heard.find(query.integer(0));
    const bool known = found != heard.end() && found->second > 0;
    all.push_back({{"client", query.integer(0)},
                   {"name", query.text(1)},
                   {"connected", known && seconds_now() - found->second <= kHereWithin},
                   {"heard", known ? json(found->second) : json(nullptr)},
                   {"revoked", query.integer(2) != 0},
                   {"last_round", std::min(query.integer(3), spec.rounds)},
                   {"uploads", query.integer(4)},
                   {"budget", spec.privacy ? json(spec.privacy->budget_of(query.integer(0))) : json(nullptr)},
                   {"spent", spec.privacy ? number_or_null(spending.of(query.integer(0)).proven) : json(nullptr)}});
  }
  return all;
}

json epsilon(const config::RunSpec& spec, privacy::Spending& spending) {
  if (!spec.privacy) return nullptr;
  double promised = 0;
  for (int64_t client = 0; client < spec.data.clients; ++client) {
    promised = std::max(promised, spec.privacy->budget_of(client));
  }
  return {{"promised", promised}, {"delta", spec.privacy->delta}, {"spent", number_or_null(spending.worst().proven)}};
}

}  // namespace

bool is_server_folder(const fs::path& folder) {
  return fs::exists(folder / kDatabase);
}

json server_status(const fs::path& folder) {
  if (!is_server_folder(folder))
    fail_user("{} is not the folder of a server: it has no {}", folder.string(), kDatabase);
  const artifacts::RunReader run(folder);
  const config::RunSpec spec = run.spec();
  io::Database database(folder / kDatabase, io::Database::Mode::kRead);
  const int64_t durable = durable_round(database);
  const auto evaluation = read_evaluation(folder);
  privacy::Spending spending = artifacts::declared_spending(spec);
  spending.advance_to(std::numeric_limits<int64_t>::max() - 1, *run.ledger());
  const bool running = artifacts::is_locked(folder);
  int64_t bytes = 0;
  for (const json& round : run.rounds()) bytes += round.value("upload_bytes", int64_t{0});
  return {{"kind", "server"},
          {"folder", folder.string()},
          {"plan", plan_hash(database)},
          {"method", spec.method},
          {"running", running},
          {"finished", run.summary().has_value()},
          {"rounds", spec.rounds},
          {"rounds_done", std::min(durable, spec.rounds)},
          {"open_round", open_round(database, durable)},
          {"places", spec.data.clients},
          {"upload_bytes", bytes},
          {"epsilon", epsilon(spec, spending)},
          {"evaluation", evaluation ? *evaluation : json(nullptr)},
          {"members", members(database, spec, spending, running)}};
}

}  // namespace sotto::serve

#include "serve/status.h"

#include "artifacts/privacy_section.h"
#include "artifacts/run_directory.h"
#include "base/error.h"
#include "base/files.h"
#include "base/json_number.h"
#include "io/database.h"

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <string>

namespace sotto::serve {
namespace {

using nlohmann::json;

constexpr const char* kDatabase = "server.sqlite";

// Whether a process holds the folder's lock. Asking takes it for a moment, shared, which disturbs nobody who has it.
bool is_running(const fs::path& folder) {
  const int file = ::open((folder / "lock").c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  const bool held = ::flock(file, LOCK_SH | LOCK_NB) != 0;
  ::close(file);
  return held;
}

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

json members(io::Database& database) {
  io::Statement query(database,
                      "SELECT client, name, revoked, seen_round, (SELECT COUNT(*) FROM uploads WHERE uploads.client = "
                      "members.client AND skipped = 0) FROM members ORDER BY client");
  json all = json::array();
  while (query.next()) {
    all.push_back({{"client", query.integer(0)},
                   {"name", query.text(1)},
                   {"revoked", query.integer(2) != 0},
                   {"last_round", query.integer(3)},
                   {"uploads", query.integer(4)}});
  }
  return all;
}

json epsilon(const artifacts::RunReader& run, const config::RunSpec& spec) {
  if (!spec.privacy) return nullptr;
  privacy::Spending spending = artifacts::declared_spending(spec);
  spending.advance_to(std::numeric_limits<int64_t>::max() - 1, *run.ledger());
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
  int64_t bytes = 0;
  for (const json& round : run.rounds()) bytes += round.value("upload_bytes", int64_t{0});
  return {{"kind", "server"},
          {"folder", folder.string()},
          {"plan", plan_hash(database)},
          {"method", spec.method},
          {"running", is_running(folder)},
          {"finished", run.summary().has_value()},
          {"rounds", spec.rounds},
          {"rounds_done", durable},
          {"open_round", open_round(database, durable)},
          {"places", spec.data.clients},
          {"upload_bytes", bytes},
          {"epsilon", epsilon(run, spec)},
          {"members", members(database)}};
}

}  // namespace sotto::serve

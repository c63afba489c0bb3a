#include "privacy/ledger.h"

#include "base/error.h"

#include <sqlite3.h>

namespace sotto::privacy {
namespace {

constexpr const char* kSchema =
    "CREATE TABLE IF NOT EXISTS releases ("
    "  id INTEGER PRIMARY KEY,"
    "  round INTEGER NOT NULL,"
    "  client INTEGER NOT NULL,"
    "  observer TEXT NOT NULL,"
    "  what TEXT NOT NULL,"
    "  mechanism TEXT NOT NULL,"
    "  why_unproven TEXT NOT NULL,"
    "  UNIQUE (round, client, observer, what))";

constexpr const char* kInsert =
    "INSERT INTO releases (round, client, observer, what, mechanism, why_unproven) VALUES (?1, ?2, ?3, ?4, ?5, ?6) "
    "ON CONFLICT DO NOTHING";

constexpr const char* kFind =
    "SELECT id, mechanism, why_unproven FROM releases WHERE round = ?1 AND client = ?2 AND observer = ?3 AND what = ?4";

}  // namespace

struct Ledger::Statement {
  Statement(sqlite3* database, const char* sql) {
    if (sqlite3_prepare_v2(database, sql, -1, &handle, nullptr) != SQLITE_OK) {
      fail_user("the ledger cannot be read: {}", sqlite3_errmsg(database));
    }
  }
  ~Statement() { sqlite3_finalize(handle); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  void bind(int index, int64_t value) const { sqlite3_bind_int64(handle, index, value); }
  void bind(int index, const std::string& value) const {
    sqlite3_bind_text(handle, index, value.data(), static_cast<int>(value.size()), SQLITE_TRANSIENT);
  }
  int step() const { return sqlite3_step(handle); }
  void reset() const { sqlite3_reset(handle); }
  int64_t integer(int column) const { return sqlite3_column_int64(handle, column); }
  std::string text(int column) const {
    const unsigned char* value = sqlite3_column_text(handle, column);
    return value == nullptr ? std::string() : std::string(reinterpret_cast<const char*>(value));
  }

  sqlite3_stmt* handle = nullptr;
};

Ledger::Ledger(const std::filesystem::path& file) {
  open(file.string());
}

Ledger::Ledger() {
  open(":memory:");
}

void Ledger::open(const std::string& name) {
  name_ = name;
  if (sqlite3_open(name.c_str(), &database_) != SQLITE_OK) {
    const std::string problem = sqlite3_errmsg(database_);
    sqlite3_close(database_);
    fail_user("cannot open the ledger {}: {}", name, problem);
  }
  try {
    execute("PRAGMA locking_mode = EXCLUSIVE");
    execute("PRAGMA journal_mode = WAL");
    execute("PRAGMA synchronous = FULL");
    execute(kSchema);
    insert_ = std::make_unique<Statement>(database_, kInsert);
    find_ = std::make_unique<Statement>(database_, kFind);
  } catch (...) {
    insert_.reset();
    sqlite3_close(database_);
    throw;
  }
}

Ledger::~Ledger() {
  insert_.reset();
  find_.reset();
  if (in_transaction_) sqlite3_exec(database_, "COMMIT", nullptr, nullptr, nullptr);
  sqlite3_close(database_);
}

void Ledger::execute(const char* sql) const {
  char* message = nullptr;
  const int code = sqlite3_exec(database_, sql, nullptr, nullptr, &message);
  const std::string problem = message == nullptr ? "" : message;
  sqlite3_free(message);
  if (code == SQLITE_BUSY) fail_user("the ledger {} is in use by another process; wait for it or stop it", name_);
  if (code != SQLITE_OK) fail_user("the ledger {} cannot be used: {}", name_, problem);
}

Receipt Ledger::spend(const Event& event) {
  const std::lock_guard lock(mutex_);
  if (!in_transaction_) {
    execute("BEGIN IMMEDIATE");
    in_transaction_ = true;
  }
  insert_->bind(1, event.round);
  insert_->bind(2, event.client);
  insert_->bind(3, event.observer);
  insert_->bind(4, event.what);
  insert_->bind(5, event.mechanism);
  insert_->bind(6, event.why_unproven);
  const int inserted = insert_->step();
  insert_->reset();
  if (inserted != SQLITE_DONE) fail_user("cannot write to the ledger {}: {}", name_, sqlite3_errmsg(database_));
  if (sqlite3_changes(database_) == 1) return Receipt(sqlite3_last_insert_rowid(database_));

  find_->bind(1, event.round);
  find_->bind(2, event.client);
  find_->bind(3, event.observer);
  find_->bind(4, event.what);
  SOTTO_INVARIANT(find_->step() == SQLITE_ROW);
  const int64_t row = find_->integer(0);
  const bool same = find_->text(1) == event.mechanism && find_->text(2) == event.why_unproven;
  find_->reset();
  if (!same) {
    fail_user("the ledger {} holds another release of client {} in round {}: it belongs to a different run", name_,
              event.client, event.round);
  }
  return Receipt(row);
}

void Ledger::commit() {
  const std::lock_guard lock(mutex_);
  if (!in_transaction_) return;
  execute("COMMIT");
  in_transaction_ = false;
}

std::vector<Event> Ledger::events() const {
  const std::lock_guard lock(mutex_);
  const Statement query(
      database_,
      "SELECT round, client, observer, what, mechanism, why_unproven FROM releases ORDER BY round, client, id");
  std::vector<Event> rows;
  while (query.step() == SQLITE_ROW) {
    rows.push_back({query.integer(0), query.integer(1), query.text(2), query.text(3), query.text(4), query.text(5)});
  }
  return rows;
}

std::vector<Event> Ledger::kinds() const {
  const std::lock_guard lock(mutex_);
  const Statement query(database_, "SELECT DISTINCT observer, what, mechanism, why_unproven FROM releases");
  std::vector<Event> rows;
  while (query.step() == SQLITE_ROW) rows.push_back({0, 0, query.text(0), query.text(1), query.text(2), query.text(3)});
  return rows;
}

std::vector<std::string> Ledger::unproven_reasons(const std::string& observer) const {
  const std::lock_guard lock(mutex_);
  const Statement query(
      database_, "SELECT DISTINCT why_unproven FROM releases WHERE observer = ?1 AND why_unproven <> '' ORDER BY 1");
  query.bind(1, observer);
  std::vector<std::string> reasons;
  while (query.step() == SQLITE_ROW) reasons.push_back(query.text(0));
  return reasons;
}

}  // namespace sotto::privacy

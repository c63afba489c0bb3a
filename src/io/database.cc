#include "io/database.h"

#include "base/error.h"

#include <sqlite3.h>

#include <cerrno>

namespace sotto::io {

Database::Database(const std::filesystem::path& file, Mode mode) : name_(file.string()) {
  const int flags = mode == Mode::kRead ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
  try {
    if (sqlite3_open_v2(name_.c_str(), &handle_, flags, nullptr) != SQLITE_OK) fail();
    sqlite3_busy_timeout(handle_, 5000);
    if (mode == Mode::kWrite) {
      execute("PRAGMA journal_mode = WAL");
      execute("PRAGMA synchronous = NORMAL");
    }
  } catch (...) {
    sqlite3_close(handle_);
    throw;
  }
}

Database::~Database() {
  sqlite3_close(handle_);
}

void Database::execute(const std::string& sql) {
  if (sqlite3_exec(handle_, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) fail();
}

void Database::fail() const {
  const bool full = sqlite3_errcode(handle_) == SQLITE_FULL || sqlite3_system_errno(handle_) == ENOSPC;
  fail_user("{} cannot be used: {}", name_,
            full ? "the disk is full; make room and start again" : sqlite3_errmsg(handle_));
}

// In WAL mode, commits are synced under FULL and not under NORMAL.
Database::Transaction::Transaction(Database& database, bool durable) : database_(database), durable_(durable) {
  if (durable_) database_.execute("PRAGMA synchronous = FULL");
  database_.execute("BEGIN IMMEDIATE");
}

Database::Transaction::~Transaction() {
  if (open_) sqlite3_exec(database_.handle_, "ROLLBACK", nullptr, nullptr, nullptr);
  if (durable_) sqlite3_exec(database_.handle_, "PRAGMA synchronous = NORMAL", nullptr, nullptr, nullptr);
}

void Database::Transaction::commit() {
  database_.execute("COMMIT");
  open_ = false;
}

Statement::Statement(Database& database, const std::string& sql) : database_(database) {
  if (sqlite3_prepare_v2(database.handle_, sql.c_str(), -1, &handle_, nullptr) != SQLITE_OK) database_.fail();
}

Statement::~Statement() {
  sqlite3_finalize(handle_);
}

Statement& Statement::bind(int index, int64_t value) {
  sqlite3_bind_int64(handle_, index, value);
  return *this;
}

Statement& Statement::bind(int index, double value) {
  sqlite3_bind_double(handle_, index, value);
  return *this;
}

Statement& Statement::bind(int index, const std::string& value) {
  sqlite3_bind_text(handle_, index, value.data(), static_cast<int>(value.size()), SQLITE_TRANSIENT);
  return *this;
}

bool Statement::next() {
  const int code = sqlite3_step(handle_);
  if (code == SQLITE_ROW) return true;
  if (code != SQLITE_DONE) database_.fail();
  return false;
}

int64_t Statement::integer(int column) const {
  return sqlite3_column_int64(handle_, column);
}

double Statement::real(int column) const {
  return sqlite3_column_double(handle_, column);
}

std::string Statement::text(int column) const {
  const unsigned char* value = sqlite3_column_text(handle_, column);
  if (value == nullptr) return "";
  return {reinterpret_cast<const char*>(value), static_cast<size_t>(sqlite3_column_bytes(handle_, column))};
}

}  // namespace sotto::io

// The ledger: one row per release, on disk before the release is used.
#pragma once

#include "privacy/release.h"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

struct sqlite3;

namespace sotto::privacy {

// One release as the ledger stores it.
struct Event {
  int64_t round = 0;
  int64_t client = 0;
  std::string observer;      // who sees it: server, clients, public
  std::string what;          // what was released: model, prototypes, …
  std::string mechanism;     // in-the-clear, …
  std::string why_unproven;  // why no finite ε can be proven for it; empty if one can

  bool operator==(const Event&) const = default;
};

// Thread-safe. One writing process per file: a second one gets a UserError.
class Ledger {
 public:
  // Opens or creates the file. An unreadable, truncated or foreign file is a UserError.
  explicit Ledger(const std::filesystem::path& file);
  // A ledger that lives in memory, for dry runs and benchmarks.
  Ledger();
  ~Ledger();
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;

  // Writes the row. The same release again (same round, client, observer, what) spends nothing and gives the same
  // receipt: a resumed round repeats its releases bit for bit.
  Receipt spend(const Event& event);

  // Makes all rows so far durable. A release may be acted on only after this returned.
  void commit();

  std::vector<Event> events() const;
  // The distinct kinds of release, whoever made them and when: round and client are 0.
  std::vector<Event> kinds() const;
  // The distinct reasons for which no finite ε can be proven for what `observer` sees; empty if all releases are
  // proven.
  std::vector<std::string> unproven_reasons(const std::string& observer) const;

 private:
  void open(const std::string& name);
  void execute(const char* sql) const;

  struct Statement;
  std::string name_;
  sqlite3* database_ = nullptr;
  std::unique_ptr<Statement> insert_;
  std::unique_ptr<Statement> find_;
  bool in_transaction_ = false;
  mutable std::mutex mutex_;
};

}  // namespace sotto::privacy

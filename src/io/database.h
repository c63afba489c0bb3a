// SQLite, as far as it is needed: one file, statements, transactions that end.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

struct sqlite3;
struct sqlite3_stmt;

namespace sotto::io {

// One connection; not thread-safe. Whatever SQLite objects to is a UserError that names the file.
class Database {
 public:
  enum class Mode { kWrite, kRead };
  // Opens the file, or creates it (kWrite). What was committed survives the end of the process; what was committed
  // durably, a power cut, too.
  Database(const std::filesystem::path& file, Mode mode);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  void execute(const std::string& sql);
  [[noreturn]] void fail() const;

  // All changes inside become visible together, or not at all if it is left without a commit.
  class Transaction {
   public:
    explicit Transaction(Database& database, bool durable = false);
    ~Transaction();
    Transaction(const Transaction&) = delete;
    Transaction& operator=(const Transaction&) = delete;
    void commit();

   private:
    Database& database_;
    bool durable_;
    bool open_ = true;
  };

 private:
  friend class Statement;
  std::string name_;
  sqlite3* handle_ = nullptr;
};

class Statement {
 public:
  Statement(Database& database, const std::string& sql);
  ~Statement();
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  Statement& bind(int index, int64_t value);
  Statement& bind(int index, double value);
  Statement& bind(int index, const std::string& value);
  // True if there is a row to read. A statement that gives none is run by its first call.
  bool next();
  int64_t integer(int column) const;
  double real(int column) const;
  std::string text(int column) const;

 private:
  Database& database_;
  sqlite3_stmt* handle_ = nullptr;
};

}  // namespace sotto::io

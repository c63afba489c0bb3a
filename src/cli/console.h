// A run as it is watched in a terminal: a bar with time left and the ε spent so far, and a row per evaluated round.
#pragma once

#include "artifacts/run_summary.h"
#include "base/progress.h"
#include "federation/federation.h"
#include "privacy/spending.h"

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace sotto::cli {

class ConsoleWatcher {
 public:
  // `rounds_done` were finished before this process started.
  ConsoleWatcher(const federation::Setup& setup, int64_t rounds_done);

  // From now on the bar and the rows show the largest ε of any client so far, where [privacy] is stated. Rows whose ε
  // would cost the run more than about a hundredth of its time show none.
  void follow(const privacy::Ledger& ledger) { ledger_ = &ledger; }

  void client_done(int64_t round);
  void round(const federation::RoundRecord& record);

 private:
  struct Column {
    std::string title;
    int width;
    int importance;  // where the terminal is too narrow for all, the least important give way
    std::function<std::string(const federation::RoundRecord&)> cell;
  };
  std::vector<Column> columns() const;
  void update_spent(int64_t round);
  std::string time_left(int64_t round) const;
  double elapsed() const;

  const config::RunSpec& spec_;
  const int64_t rounds_done_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  Progress progress_;
  privacy::Spending spending_;
  const privacy::Ledger* ledger_ = nullptr;
  std::optional<privacy::Guarantee> spent_;  // after the last round, if known
  std::string spent_text_;                   // behind the bar
  double spending_seconds_ = 0;              // taken by the computation of ε
  std::vector<Column> columns_;              // chosen when the first row is printed
};

// The figures of a summary as a few aligned lines.
std::string describe_summary(const artifacts::RunSummary& summary);

}  // namespace sotto::cli

// A home: somebody's records, and a budget that holds over every run that touches them.
//
//   budget.toml      what the owner promises: epsilon, delta, adjacency; unit, observer, budgets as in [privacy].
//                    In the home of somebody who takes part in federations it is the table [budget] of policy.toml.
//   ledger.sqlite    a row for every release of every run that is charged here; each says whose it is
//   ledger.mark      how many rows the ledger had and its last link, after each commit
//
// A release is paid for here before the run's own ledger knows of it (Ledger::charge_to), so that what is spent is never
// more than what the home knows. Budgets are held to what can be proven, whatever a run claims.
#pragma once

#include "privacy/ledger.h"
#include "settings/section.h"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>

namespace sotto::privacy {

// Which records a home speaks of. Client i must be the same one in every run, or its rows would not be about the same
// records.
struct HomeRecords {
  std::string name;     // for people
  std::string content;  // a hash of the records, in whatever order
  std::string dealt;    // a hash of who holds which of them
  int64_t clients = 0;

  bool operator==(const HomeRecords&) const = default;
};

// Thread-safe. One writing process per home.
class Home {
 public:
  // For reading, also beside a writer. A folder that is no home, and a ledger that is missing, shorter than its mark or
  // another one, are UserErrors.
  explicit Home(const std::filesystem::path& folder);
  // For runs on these records. The first run of a home makes its ledger; later, other records, a changed budget.toml and
  // a home that another process writes to are UserErrors too.
  Home(const std::filesystem::path& folder, const HomeRecords& records);
  Home(const Home&) = delete;
  Home& operator=(const Home&) = delete;

  // Whether a folder looks like one: it has a budget.toml or a policy.toml.
  static bool is_home(const std::filesystem::path& folder);
  // Makes a folder one: writes budget.toml, with these words. What a folder promises already holds instead. Words that are
  // no promise are a UserError, and nothing is written.
  static void promise(const std::filesystem::path& folder, settings::Section words);

  // From here on releases of which nothing can be proven get their rows like all others, instead of being refused: the
  // owner has said so.
  void permit_unproven();

  // Pays for a release of the run that event.run names. BudgetSpent if all that the client has released in any run
  // would come to more than the home allows, or if nothing can be proven of what the observer gets to see. The same
  // release of the same run spends nothing with replayed noise, as in Ledger::spend.
  void spend(const Event& event, int64_t expected = 1);
  // Makes all rows so far durable, and then the mark.
  void commit();
  // Takes back what is not durable yet, as Ledger::forget_uncommitted.
  void forget_uncommitted() { ledger_->forget_uncommitted(); }

  // Absolute.
  const std::filesystem::path& folder() const { return folder_; }
  const PrivacyTerms& terms() const { return terms_; }
  const HomeRecords& records() const { return records_; }
  // Drawn when the home was made, so that one made anew in the same folder is another.
  const std::string& id() const { return id_; }
  const Ledger& ledger() const { return *ledger_; }
  Ledger& ledger() { return *ledger_; }

 private:
  void open(Ledger::Mode mode);
  void read_notes();

  std::filesystem::path folder_;
  PrivacyTerms terms_;
  HomeRecords records_;
  std::string id_;
  std::unique_ptr<Ledger> ledger_;
  std::mutex mutex_;  // of commits
  int64_t marked_rows_ = 0;
  bool unproven_permitted_ = false;
};

}  // namespace sotto::privacy

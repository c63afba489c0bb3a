// The ledger: one row per release, on disk before the release is used.
//
// Rows form a hash chain: each holds the SHA-256 of the one before it and of itself, and the file knows the last one.
// Order is that of writing; the clock is written down for people and never trusted.
//
// Proof: docs/proofs/composition-and-budgets.md
#pragma once

#include "privacy/guarantee.h"
#include "privacy/release.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

struct sqlite3;

namespace sotto::privacy {

class Home;

// A release was refused: it would have cost the client more than its budget. Nothing was computed or written.
class BudgetSpent : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// What budgets are compared with: what can be proven, or what a paper claims to spend.
enum class HeldTo { kProven, kClaimed };
constexpr auto choices(HeldTo) {
  return std::to_array<settings::Choice<HeldTo>>({{HeldTo::kProven, "sound"}, {HeldTo::kClaimed, "paper"}});
}

// How many rows there are, and the link of the last of them.
struct LedgerEnd {
  int64_t rows = 0;
  std::string head;

  bool operator==(const LedgerEnd&) const = default;
};

// Thread-safe. One writing process per file: a second one gets a UserError. Reading beside a writer is fine.
class Ledger {
 public:
  enum class Mode { kWrite, kRead };

  // Opens the file, or creates it durably (kWrite). An unreadable, truncated, shortened or foreign file is a UserError.
  explicit Ledger(const std::filesystem::path& file, Mode mode = Mode::kWrite);
  // A ledger that lives in memory, for dry runs and benchmarks.
  Ledger();
  ~Ledger();
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;

  // Sets the terms under which clients take part, once: from now on no client spends more than its budget in the eyes
  // of the declared observer. Other terms than those the file holds are a UserError. Releases in the clear are refused
  // unless the terms name them.
  void agree(const PrivacyTerms& terms, HeldTo held_to);
  std::optional<PrivacyTerms> terms() const;

  // Releases in the clear need no name in the terms from here on.
  void permit_clear();

  // For audits and benchmarks, of a ledger in memory: the same release is made again and again, also with other records,
  // and none of them leaves. Streams may be drawn more than once.
  void rehearse();

  // Writes the row and pays for the release; BudgetSpent if the client cannot afford it. Ask before computing anything
  // from private records. With replayed noise the same release again (same round, client, observer, what), as a process
  // makes it that goes on after a crash, spends nothing: it repeats itself bit for bit. Within one process its noise is
  // refused (claim_stream), for what is released again need not be the same. With secure noise it is another release and
  // costs again.
  // `expected` is how many releases like this one the client will make in the whole run, if known: a hint for speed.
  Receipt spend(const Event& event, int64_t expected = 1);

  // Writes the row of a release that was paid for in another ledger under the same terms: one of another process that
  // works on the same run. The same release again is treated as spend does. Not for ledgers that are charged to a home.
  Receipt take_over(const Event& event);

  // From now on every release is charged to this home too (home.h), before it gets its row here; its row there is
  // durable first. `name` is for people: it begins what the run is called there. The home must outlive this object.
  void charge_to(Home& home, const std::string& name);
  // The same for one client's part of a federation: in the home, whatever is released here is a release of `client` in
  // the run of exactly this name.
  void charge_as(Home& home, const std::string& run, int64_t client);
  // A run keeps the home it began with. A UserError if this one is another, knows less than the run has released, or
  // comes after releases without a home; or if the run has a home and this is null.
  void check_home(const Home* home) const;
  // What the run is called in its home; "" if it has none.
  std::string run_in_home() const;
  // In a home's ledger: what `client` would have spent in the eyes of the declared observer if the run of this name
  // made these releases and no others.
  double epsilon_with(const std::string& run, int64_t client, const Tally& planned);

  // Notes that a release draws the replayed stream of this name for its seed, round and client. A stream that this round
  // has drawn already is an internal error: two releases would share their noise, and their difference would have none.
  void claim_stream(const ReleaseContext& context, std::string_view name);

  // Makes all rows so far durable. A release may be acted on only after this returned.
  void commit();
  // The same, unless this row is durable already.
  void commit_through(int64_t row);

  // Takes back all rows that are not durable yet: nothing that they speak of has left, or ever will.
  void forget_uncommitted();

  std::vector<Event> events() const;
  // Only those of rounds first … last: cheap however long the ledger is.
  std::vector<Event> events(int64_t first_round, int64_t last_round) const;
  // Only those of rows after this one, in the order of writing.
  std::vector<Event> events_after(int64_t row) const;
  // The distinct kinds of release, whoever made them and when: only observer, what, mechanism and why_unproven are set.
  std::vector<Event> kinds() const;
  // What each client that released something has spent in the eyes of `observer`; kEveryone's share is under its own
  // key.
  std::map<int64_t, Tally> tallies(const std::string& observer) const;
  // What `client` released before `observer` in rows that were written since then (seconds since 1970).
  Tally spent_since(int64_t time, int64_t client, const std::string& observer) const;
  // secure, replay, or none if nothing was noised.
  std::string generator() const;

  // A fact that the file holds beside its rows, outside the chain; "" if it does not. One that is set while rows wait for
  // their commit becomes durable with them, otherwise at once. The names rows, head, terms, variant and home are the
  // ledger's own.
  std::string note(const std::string& name) const;
  void set_note(const std::string& name, const std::string& value);

  // Of the rows that are durable.
  LedgerEnd durable_end() const;

  int64_t rows() const;
  // In a home's ledger: those of one run.
  int64_t rows_of(const std::string& run) const;
  // The last link of the chain.
  std::string head() const;
  // The link of one row; rows are numbered from 1. "" if there is no such row.
  std::string link(int64_t row) const;
  // Recomputes the chain; a UserError names the first row that was changed.
  void verify_chain() const;

 private:
  void open(const std::string& name, Mode mode);
  void close();
  void execute(const char* sql) const;
  void refuse_lost_rows() const;
  void load();
  void recall_spent();
  // Whether a release is held against the budgets.
  bool counts(const Event& event) const;
  void refuse_unnamed(const Event& event) const;
  void afford(const Event& event, int64_t expected);
  // The row of this release. `pay` is called first, unless a replayed release has its row already.
  Receipt write(const Event& event, const std::function<void()>& pay);
  void note_spent(const Event& event);
  // By releases of other runs than this one, everyone's included.
  Tally spent_elsewhere(const std::string& run, int64_t client) const;
  double epsilon_of(const Tally& tally);
  std::string meta(const char* key) const;
  void set_meta(const char* key, const std::string& value) const;

  struct Statement;
  std::string name_;
  int lock_ = -1;
  sqlite3* database_ = nullptr;
  std::unique_ptr<Statement> insert_;
  std::unique_ptr<Statement> find_;
  bool in_transaction_ = false;
  int64_t last_row_ = 0;     // that this object wrote
  int64_t durable_row_ = 0;  // all rows up to this one are on disk
  int64_t rows_ = 0;
  std::string head_;
  LedgerEnd durable_end_;
  int64_t last_time_ = 0;
  std::optional<PrivacyTerms> terms_;
  bool by_claim_ = false;
  bool clear_permitted_ = false;
  bool rehearsing_ = false;
  std::map<int64_t, Tally> spent_;                                // in the eyes of the declared observer
  std::map<std::string, std::map<int64_t, Tally>> spent_in_run_;  // the same by run, where rows name theirs
  std::map<Tally, double> epsilon_;                               // of tallies met so far
  // (seed, client, name) of the streams that the latest round with noise has drawn.
  std::set<std::tuple<uint64_t, int64_t, std::string>> streams_;
  int64_t stream_round_ = 0;
  Home* home_ = nullptr;
  std::string run_in_home_;
  std::optional<int64_t> client_in_home_;  // instead of the client that releases
  mutable std::mutex mutex_;
};

}  // namespace sotto::privacy

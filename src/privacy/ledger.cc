#include "privacy/ledger.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/files.h"
#include "privacy/home.h"
#include "privacy/noise/noise_source.h"

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <sqlite3.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>

namespace sotto::privacy {
namespace {

using nlohmann::json;

constexpr int kVersion = 5;
constexpr const char* kInMemory = ":memory:";  // as SQLite calls it
// ε is rounded up on both sides of a comparison with a budget that was used to calibrate it.
constexpr double kTolerance = 1e-9;
// Budgets above this are held as if noise were drawn exactly, so that runs with hardly any are possible; what is proven
// of them in the end is less, or nothing (Tally::proven).
constexpr double kLooseBudget = 40;
// In the file of a run: the home that pays as well, and what the run is called there.
constexpr const char* kHomeNote = "home";

constexpr const char* kSchema = R"(
  CREATE TABLE IF NOT EXISTS releases (
    id INTEGER PRIMARY KEY,
    round INTEGER NOT NULL, client INTEGER NOT NULL, observer TEXT NOT NULL, what TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    mechanism TEXT NOT NULL, why_unproven TEXT NOT NULL,
    noise REAL NOT NULL, sensitivity REAL NOT NULL, sampling_rate REAL NOT NULL, batches INTEGER NOT NULL, steps INTEGER NOT NULL, slack REAL NOT NULL,
    claimed_by TEXT NOT NULL, claimed_multiplier REAL NOT NULL, claimed_steps INTEGER NOT NULL,
    claimed_epsilon REAL NOT NULL, adjacency TEXT NOT NULL, unit TEXT NOT NULL, generator TEXT NOT NULL,
    parameters TEXT NOT NULL, run TEXT NOT NULL, time INTEGER NOT NULL, chain TEXT NOT NULL,
    UNIQUE (run, round, client, observer, what, attempt));
  CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
)";

constexpr const char* kColumns =
    "round, client, observer, what, mechanism, why_unproven, noise, sensitivity, sampling_rate, batches, steps, slack, "
    "claimed_by, claimed_multiplier, claimed_steps, claimed_epsilon, adjacency, unit, generator, parameters, run";
constexpr int kColumnCount = 21;

// What a row's link in the chain covers.
std::string link_of(const std::string& previous, const Event& e, int64_t attempt, int64_t time) {
  return sha256(json::array({previous,
                             e.round,
                             e.client,
                             e.observer,
                             e.what,
                             attempt,
                             e.mechanism,
                             e.why_unproven,
                             e.noise_scale,
                             e.sensitivity,
                             e.sampling_rate,
                             e.batches,
                             e.steps,
                             e.slack,
                             e.claim.by,
                             e.claim.multiplier,
                             e.claim.steps,
                             e.claim.epsilon,
                             std::string(to_text(e.neighbours.adjacency)),
                             settings::word(e.neighbours.unit),
                             e.generator,
                             e.parameters,
                             e.run,
                             time})
                    // A damaged file may hold what is no text: it has another link then, and need not have one at all.
                    .dump(-1, ' ', false, json::error_handler_t::replace));
}

json home_note(const std::string& text, const std::string& ledger) {
  json note = json::parse(text, nullptr, false);
  for (const char* key : {"id", "folder", "run"}) {
    if (!note.is_object() || !note.contains(key) || !note[key].is_string()) {
      fail_user("the ledger {} is damaged: which home it is charged to cannot be read", ledger);
    }
  }
  return note;
}

}  // namespace

struct Ledger::Statement {
  Statement(sqlite3* in, const std::string& sql) : database(in) {
    if (sqlite3_prepare_v2(in, sql.c_str(), -1, &handle, nullptr) != SQLITE_OK) {
      fail_user("the ledger cannot be read: {}", sqlite3_errmsg(in));
    }
  }
  ~Statement() { sqlite3_finalize(handle); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  void bind(int index, int64_t value) const { sqlite3_bind_int64(handle, index, value); }
  void bind(int index, double value) const { sqlite3_bind_double(handle, index, value); }
  void bind(int index, const std::string& value) const {
    sqlite3_bind_text(handle, index, value.data(), static_cast<int>(value.size()), SQLITE_TRANSIENT);
  }
  // True if there is a row to read.
  bool next() const {
    const int code = sqlite3_step(handle);
    if (code == SQLITE_ROW) return true;
    if (code == SQLITE_FULL) fail_user("the ledger cannot be written: the disk is full; make room and start again");
    if (code != SQLITE_DONE) fail_user("the ledger cannot be used: {}", sqlite3_errmsg(database));
    return false;
  }
  void reset() const { sqlite3_reset(handle); }
  int64_t integer(int column) const { return sqlite3_column_int64(handle, column); }
  double real(int column) const { return sqlite3_column_double(handle, column); }
  std::string text(int column) const {
    const unsigned char* value = sqlite3_column_text(handle, column);
    return value == nullptr ? std::string() : std::string(reinterpret_cast<const char*>(value));
  }

  void bind(const Event& e) const {
    bind(1, e.round);
    bind(2, e.client);
    bind(3, e.observer);
    bind(4, e.what);
    bind(5, e.mechanism);
    bind(6, e.why_unproven);
    bind(7, e.noise_scale);
    bind(8, e.sensitivity);
    bind(9, e.sampling_rate);
    bind(10, e.batches);
    bind(11, e.steps);
    bind(12, e.slack);
    bind(13, e.claim.by);
    bind(14, e.claim.multiplier);
    bind(15, e.claim.steps);
    bind(16, e.claim.epsilon);
    bind(17, std::string(to_text(e.neighbours.adjacency)));
    bind(18, settings::word(e.neighbours.unit));
    bind(19, e.generator);
    bind(20, e.parameters);
    bind(21, e.run);
  }
  // kColumns, in order.
  Event event() const {
    return {.round = integer(0),
            .client = integer(1),
            .observer = text(2),
            .what = text(3),
            .mechanism = text(4),
            .why_unproven = text(5),
            .noise_scale = real(6),
            .sensitivity = real(7),
            .sampling_rate = real(8),
            .batches = integer(9),
            .steps = integer(10),
            .slack = real(11),
            .claim = {.by = text(12), .multiplier = real(13), .steps = integer(14), .epsilon = real(15)},
            .neighbours = {adjacency_from_text(text(16)), settings::from_word<Unit>(text(17))},
            .generator = text(18),
            .parameters = text(19),
            .run = text(20)};
  }

  sqlite3* database;
  sqlite3_stmt* handle = nullptr;
};

Ledger::Ledger(const std::filesystem::path& file, Mode mode) {
  if (mode == Mode::kRead && !std::filesystem::exists(file)) fail_user("there is no ledger {}", file.string());
  open(file.string(), mode);
}

Ledger::Ledger() {
  open(kInMemory, Mode::kWrite);
}

void Ledger::open(const std::string& name, Mode mode) {
  name_ = name;
  const int flags = mode == Mode::kRead ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
  try {
    if (sqlite3_open_v2(name.c_str(), &database_, flags, nullptr) != SQLITE_OK) {
      fail_user("cannot open the ledger {}: {}", name, sqlite3_errmsg(database_));
    }
    if (mode == Mode::kWrite && name != kInMemory) {
      lock_ = ::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
      if (lock_ < 0) fail_user("cannot open the ledger {}: {}", name, std::strerror(errno));
      if (::flock(lock_, LOCK_EX | LOCK_NB) != 0) {
        fail_user("the ledger {} is in use by another process; wait for it or stop it", name);
      }
    }
    sqlite3_busy_timeout(database_, 5000);
    if (mode == Mode::kWrite) {
      execute("PRAGMA journal_mode = WAL");
      execute("PRAGMA synchronous = FULL");
    }
    load();
    if (mode == Mode::kWrite) {
      insert_ = std::make_unique<Statement>(
          database_, fmt::format("INSERT INTO releases ({}, attempt, time, chain) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, "
                                 "?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24)",
                                 kColumns));
      find_ = std::make_unique<Statement>(
          database_, fmt::format("SELECT {}, id, attempt FROM releases WHERE round = ?1 AND client = ?2 AND observer = "
                                 "?3 AND what = ?4 AND run = ?5 ORDER BY attempt DESC LIMIT 1",
                                 kColumns));
    }
  } catch (...) {
    close();
    throw;
  }
}

void Ledger::load() {
  const Statement version(database_, "PRAGMA user_version");
  version.next();
  const Statement tables(database_, "SELECT COUNT(*) FROM sqlite_master WHERE name = 'releases'");
  tables.next();
  if (tables.integer(0) == 0) {
    if (sqlite3_db_readonly(database_, "main") != 0) fail_user("{} is not a ledger: it holds none", name_);
    // In one step: a process killed here leaves either a whole ledger or none.
    execute(fmt::format("BEGIN IMMEDIATE; {} PRAGMA user_version = {}; COMMIT", kSchema, kVersion).c_str());
    if (name_ != kInMemory) sync_folder(fs::path(name_).parent_path());
    return;
  }
  if (version.integer(0) != kVersion) {
    fail_user("the ledger {} was written by another version of Sotto (format {}, this one reads {})", name_,
              version.integer(0), kVersion);
  }
  // In one view of the file: a writer may commit between two queries.
  execute("BEGIN");
  const Statement count(database_, "SELECT COUNT(*), MAX(id), MAX(time) FROM releases");
  count.next();
  rows_ = count.integer(0);
  last_time_ = count.integer(2);
  const Statement last(database_, "SELECT chain FROM releases ORDER BY id DESC LIMIT 1");
  head_ = last.next() ? last.text(0) : "";
  const std::string known_rows = meta("rows");
  if (known_rows != (rows_ == 0 && known_rows.empty() ? "" : std::to_string(rows_)) || meta("head") != head_) {
    fail_user("the ledger {} has been tampered with: it holds {} rows where it should hold {}", name_, rows_,
              known_rows.empty() ? "none" : known_rows);
  }
  durable_end_ = {rows_, head_};
  const std::string terms = meta("terms");
  if (!terms.empty()) {
    try {
      terms_ = privacy_terms_from(json::parse(terms));
    } catch (const json::exception&) {
      fail_user("the ledger {} is damaged: its terms cannot be read", name_);
    }
    by_claim_ = settings::from_word<HeldTo>(meta("variant")) == HeldTo::kClaimed;
  }
  recall_spent();
  execute("COMMIT");
}

void Ledger::recall_spent() {
  spent_.clear();
  spent_in_run_.clear();
  if (!terms_) return;
  for (const Event& event : events()) {
    if (counts(event)) note_spent(event);
  }
}

Ledger::~Ledger() {
  if (in_transaction_ && name_ != kInMemory) {
    try {
      commit();
    } catch (...) {  // NOLINT(bugprone-empty-catch): nothing was released on the strength of these rows
    }
  }
  close();
}

void Ledger::close() {
  insert_.reset();
  find_.reset();
  sqlite3_close(database_);
  database_ = nullptr;
  if (lock_ >= 0) ::close(lock_);
  lock_ = -1;
}

void Ledger::execute(const char* sql) const {
  char* message = nullptr;
  const int code = sqlite3_exec(database_, sql, nullptr, nullptr, &message);
  const std::string problem = message == nullptr ? "" : message;
  sqlite3_free(message);
  if (code == SQLITE_BUSY) fail_user("the ledger {} is in use by another process; wait for it or stop it", name_);
  if (code != SQLITE_OK) {
    const bool full = code == SQLITE_FULL || sqlite3_system_errno(database_) == ENOSPC;
    fail_user("the ledger {} cannot be used: {}", name_,
              full ? "the disk is full; make room and start again" : problem);
  }
}

std::string Ledger::meta(const char* key) const {
  const Statement query(database_, "SELECT value FROM meta WHERE key = ?1");
  query.bind(1, std::string(key));
  return query.next() ? query.text(0) : "";
}

void Ledger::set_meta(const char* key, const std::string& value) const {
  const Statement write(database_, "INSERT OR REPLACE INTO meta (key, value) VALUES (?1, ?2)");
  write.bind(1, std::string(key));
  write.bind(2, value);
  write.next();
}

void Ledger::agree(const PrivacyTerms& terms, HeldTo held_to) {
  const std::string variant = settings::word(held_to);
  const std::lock_guard lock(mutex_);
  const std::string text = to_json(terms).dump();
  const std::string known = meta("terms");
  if (!known.empty() && (known != text || meta("variant") != variant)) {
    fail_user("the ledger {} was opened under other terms: {} ({})", name_, known, meta("variant"));
  }
  // In one statement: killed here, it has agreed to both or to nothing.
  const Statement write(database_, "INSERT OR REPLACE INTO meta (key, value) VALUES ('terms', ?1), ('variant', ?2)");
  write.bind(1, text);
  write.bind(2, variant);
  write.next();
  terms_ = terms;
  by_claim_ = held_to == HeldTo::kClaimed;
}

void Ledger::permit_clear() {
  const std::lock_guard lock(mutex_);
  clear_permitted_ = true;
}

void Ledger::rehearse() {
  const std::lock_guard lock(mutex_);
  SOTTO_INVARIANT(name_ == kInMemory);
  rehearsing_ = true;
}

std::optional<PrivacyTerms> Ledger::terms() const {
  const std::lock_guard lock(mutex_);
  return terms_;
}

bool Ledger::counts(const Event& event) const {
  return is_seen_by(event, settings::word(terms_->observer)) && (by_claim_ || event.why_unproven.empty());
}

void Ledger::refuse_unnamed(const Event& event) const {
  if (!terms_ || by_claim_ || clear_permitted_ || event.mechanism != kClearMechanism) return;
  const auto& named = terms_->unproven;
  if (std::find(named.begin(), named.end(), event.what) != named.end()) return;
  throw BudgetSpent(
      fmt::format("'{}' would be released without noise, which privacy.unproven does not name", event.what));
}

void Ledger::note_spent(const Event& event) {
  spent_[event.client].add(event);
  if (!event.run.empty()) spent_in_run_[event.run][event.client].add(event);
}

Tally Ledger::spent_elsewhere(const std::string& run, int64_t client) const {
  Tally elsewhere;
  for (const auto& [other, spent] : spent_in_run_) {
    if (other == run) continue;
    for (const int64_t payer : std::set{client, kEveryone}) {
      const auto found = spent.find(payer);
      if (found != spent.end()) elsewhere.add(found->second);
    }
  }
  return elsewhere;
}

double Ledger::epsilon_of(const Tally& tally) {
  const auto known = epsilon_.find(tally);
  if (known != epsilon_.end()) return known->second;
  const double delta = terms_->delta;
  double value = by_claim_ ? tally.claimed(delta) : tally.proven_of_ideal_noise(delta);
  if (!by_claim_ && value < kLooseBudget) value = tally.proven(delta);
  return epsilon_[tally] = value;
}

double Ledger::epsilon_with(const std::string& run, int64_t client, const Tally& planned) {
  const std::lock_guard lock(mutex_);
  SOTTO_INVARIANT(terms_.has_value());
  Tally after = spent_elsewhere(run, client);
  after.add(planned);
  return epsilon_of(after);
}

void Ledger::afford(const Event& event, int64_t expected) {
  refuse_unnamed(event);
  if (!terms_ || !event.why_unproven.empty() || !is_seen_by(event, settings::word(terms_->observer))) return;
  const auto check = [&](Tally after, double budget, int64_t client) {
    after.add(event);
    const double limit = budget * (1 + kTolerance);
    Tally planned = spent_elsewhere(event.run, client);
    planned.add(event, std::max<int64_t>(expected, 1));
    if (after.within(planned) && epsilon_of(planned) <= limit) return;
    const double would_be = epsilon_of(after);
    if (would_be <= limit) return;
    int digits = 4;  // or as many as tell the two apart
    while (digits < 16 && fmt::format("{:.{}g}", budget, digits) == fmt::format("{:.{}g}", would_be, digits)) ++digits;
    throw BudgetSpent(fmt::format("its budget is ε = {:.4g}, and releasing '{}' would make it {:.{}g}{}", budget,
                                  event.what, would_be, digits, client == kEveryone ? " for everyone" : ""));
  };
  const auto spent_by = [&](int64_t client) {
    const auto found = spent_.find(client);
    return found == spent_.end() ? Tally() : found->second;
  };
  const Tally everyone = spent_by(kEveryone);
  if (event.client != kEveryone) {
    Tally both = spent_by(event.client);
    both.add(everyone);
    check(std::move(both), terms_->budget_of(event.client), event.client);
    return;
  }
  check(everyone, terms_->least_budget(), kEveryone);
  for (const auto& [client, tally] : spent_) {
    if (client == kEveryone) continue;
    Tally both = tally;
    both.add(everyone);
    check(std::move(both), terms_->budget_of(client), client);
  }
}

Receipt Ledger::spend(const Event& event, int64_t expected) {
  const std::lock_guard lock(mutex_);
  return write(event, [&] {
    afford(event, expected);
    if (home_ == nullptr) return;
    Event charged = event;
    charged.run = run_in_home_;
    charged.client = client_in_home_.value_or(event.client);
    home_->spend(charged, expected);
  });
}

Receipt Ledger::take_over(const Event& event) {
  const std::lock_guard lock(mutex_);
  SOTTO_INVARIANT(home_ == nullptr);
  return write(event, [] {});
}

Receipt Ledger::write(const Event& event, const std::function<void()>& pay) {
  int64_t attempt = 0;
  find_->bind(1, event.round);
  find_->bind(2, event.client);
  find_->bind(3, event.observer);
  find_->bind(4, event.what);
  find_->bind(5, event.run);
  if (find_->next()) {
    const Event known = find_->event();
    const int64_t row = find_->integer(kColumnCount);
    attempt = find_->integer(kColumnCount + 1) + 1;
    find_->reset();
    if (known != event) {
      fail_user("the ledger {} holds another release of client {} in round {}: it belongs to a different run", name_,
                event.client, event.round);
    }
    if (event.generator != "secure") return Receipt(row, event.noise_scale, event.sensitivity);
  }
  find_->reset();
  refuse_lost_rows();
  pay();
  if (!in_transaction_) {
    execute("BEGIN IMMEDIATE");
    in_transaction_ = true;
  }
  const int64_t time = std::max(seconds_now(), last_time_);
  std::string chain = link_of(head_, event, attempt, time);
  insert_->bind(event);
  insert_->bind(kColumnCount + 1, attempt);
  insert_->bind(kColumnCount + 2, time);
  insert_->bind(kColumnCount + 3, chain);
  insert_->next();
  const int64_t row = sqlite3_last_insert_rowid(database_);
  insert_->reset();
  head_ = std::move(chain);
  last_time_ = time;
  ++rows_;
  if (terms_ && counts(event)) note_spent(event);
  last_row_ = row;
  return Receipt(row, event.noise_scale, event.sensitivity);
}

void Ledger::claim_stream(const ReleaseContext& context, std::string_view name) {
  const std::lock_guard lock(mutex_);
  if (rehearsing_) return;
  if (context.round != stream_round_) streams_.clear();
  stream_round_ = context.round;
  const bool drawn_once = streams_.emplace(context.seed, context.client, std::string(name)).second;
  SOTTO_INVARIANT(drawn_once);
}

void Ledger::commit() {
  const std::lock_guard lock(mutex_);
  if (!in_transaction_) return;
  refuse_lost_rows();
  if (home_ != nullptr) home_->commit();
  set_meta("rows", std::to_string(rows_));
  set_meta("head", head_);
  execute("COMMIT");
  in_transaction_ = false;
  durable_row_ = last_row_;
  durable_end_ = {rows_, head_};
}

// SQLite ends a transaction by itself when the disk is full. To go on would be to count rows that are not there.
void Ledger::refuse_lost_rows() const {
  if (!in_transaction_ || sqlite3_get_autocommit(database_) == 0) return;
  fail_user("the ledger {} could not be written, and what had not reached the disk is gone; start again", name_);
}

void Ledger::forget_uncommitted() {
  {
    const std::lock_guard lock(mutex_);
    if (!in_transaction_) return;
    if (sqlite3_get_autocommit(database_) == 0) execute("ROLLBACK");
    in_transaction_ = false;
    last_row_ = durable_row_;
    rows_ = durable_end_.rows;
    head_ = durable_end_.head;
    streams_.clear();
  }
  recall_spent();
}

void Ledger::commit_through(int64_t row) {
  {
    const std::lock_guard lock(mutex_);
    if (row <= durable_row_) return;
  }
  commit();
}

std::string Ledger::note(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  return meta(name.c_str());
}

void Ledger::set_note(const std::string& name, const std::string& value) {
  const std::lock_guard lock(mutex_);
  refuse_lost_rows();
  set_meta(name.c_str(), value);
}

void Ledger::check_home(const Home* home) const {
  const std::string known = note(kHomeNote);
  const std::lock_guard lock(mutex_);
  if (known.empty()) {
    if (home == nullptr || rows_ == 0) return;
    fail_user(
        "{} holds releases that no home has paid for, so that {} cannot count them; leave --home out, or run it again "
        "with another --out",
        name_, home->folder().string());
  }
  const json noted = home_note(known, name_);
  const auto folder = noted["folder"].get<std::string>();
  if (home == nullptr) fail_user("{} is charged to the home {}; add --home {}", name_, folder, folder);
  if (noted["id"] != home->id()) {
    fail_user("{} is charged to the home {}, not to {}; use that one", name_, folder, home->folder().string());
  }
  const int64_t paid = home->ledger().rows_of(noted["run"].get<std::string>());
  if (paid < rows_) {
    fail_user("the home {} knows of {} of the {} releases in {}: its ledger is an older copy; put its own back",
              home->folder().string(), paid, rows_, name_);
  }
}

void Ledger::charge_to(Home& home, const std::string& name) {
  check_home(&home);
  const std::lock_guard lock(mutex_);
  if (meta(kHomeNote).empty()) {
    const std::string run = fmt::format("{}-{:08x}", name, NoiseSource::secure().bits() >> 32);
    set_meta(kHomeNote, json{{"id", home.id()}, {"folder", home.folder().string()}, {"run", run}}.dump());
  }
  home_ = &home;
  run_in_home_ = home_note(meta(kHomeNote), name_)["run"].get<std::string>();
}

void Ledger::charge_as(Home& home, const std::string& run, int64_t client) {
  const std::lock_guard lock(mutex_);
  home_ = &home;
  run_in_home_ = run;
  client_in_home_ = client;
}

std::string Ledger::run_in_home() const {
  const std::lock_guard lock(mutex_);
  const std::string known = meta(kHomeNote);
  return known.empty() ? "" : home_note(known, name_)["run"].get<std::string>();
}

std::vector<Event> Ledger::events() const {
  return events(std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max());
}

std::vector<Event> Ledger::events(int64_t first_round, int64_t last_round) const {
  const std::lock_guard lock(mutex_);
  const Statement query(
      database_,
      fmt::format("SELECT {} FROM releases WHERE round BETWEEN ?1 AND ?2 ORDER BY round, client, id", kColumns));
  query.bind(1, first_round);
  query.bind(2, last_round);
  std::vector<Event> rows;
  while (query.next()) rows.push_back(query.event());
  return rows;
}

std::vector<Event> Ledger::events_after(int64_t row) const {
  const std::lock_guard lock(mutex_);
  const Statement query(database_, fmt::format("SELECT {} FROM releases WHERE id > ?1 ORDER BY id", kColumns));
  query.bind(1, row);
  std::vector<Event> rows;
  while (query.next()) rows.push_back(query.event());
  return rows;
}

std::vector<Event> Ledger::kinds() const {
  const std::lock_guard lock(mutex_);
  const Statement query(database_, "SELECT DISTINCT observer, what, mechanism, why_unproven FROM releases");
  std::vector<Event> rows;
  while (query.next()) {
    rows.push_back(
        {.observer = query.text(0), .what = query.text(1), .mechanism = query.text(2), .why_unproven = query.text(3)});
  }
  return rows;
}

std::map<int64_t, Tally> Ledger::tallies(const std::string& observer) const {
  const std::lock_guard lock(mutex_);
  const Statement query(database_, fmt::format("SELECT 0 AS round, {}, COUNT(*) FROM releases GROUP BY {}",
                                               std::string(kColumns).substr(7), std::string(kColumns).substr(7)));
  std::map<int64_t, Tally> tallies;
  while (query.next()) {
    const Event event = query.event();
    if (is_seen_by(event, observer)) tallies[event.client].add(event, query.integer(kColumnCount));
  }
  return tallies;
}

Tally Ledger::spent_since(int64_t time, int64_t client, const std::string& observer) const {
  const std::lock_guard lock(mutex_);
  const Statement query(
      database_, fmt::format("SELECT {} FROM releases WHERE time >= ?1 AND client IN (?2, {})", kColumns, kEveryone));
  query.bind(1, time);
  query.bind(2, client);
  Tally tally;
  while (query.next()) {
    const Event event = query.event();
    if (is_seen_by(event, observer)) tally.add(event);
  }
  return tally;
}

std::string Ledger::generator() const {
  const std::lock_guard lock(mutex_);
  const Statement query(database_, "SELECT DISTINCT generator FROM releases WHERE generator <> 'none' ORDER BY 1");
  return query.next() ? query.text(0) : "none";
}

LedgerEnd Ledger::durable_end() const {
  const std::lock_guard lock(mutex_);
  return durable_end_;
}

int64_t Ledger::rows() const {
  const std::lock_guard lock(mutex_);
  return rows_;
}

int64_t Ledger::rows_of(const std::string& run) const {
  const std::lock_guard lock(mutex_);
  const Statement query(database_, "SELECT COUNT(*) FROM releases WHERE run = ?1");
  query.bind(1, run);
  query.next();
  return query.integer(0);
}

std::string Ledger::head() const {
  const std::lock_guard lock(mutex_);
  return head_;
}

std::string Ledger::link(int64_t row) const {
  const std::lock_guard lock(mutex_);
  const Statement query(database_, "SELECT chain FROM releases WHERE id = ?1");
  query.bind(1, row);
  return query.next() ? query.text(0) : "";
}

void Ledger::verify_chain() const {
  const std::lock_guard lock(mutex_);
  const Statement query(database_,
                        fmt::format("SELECT {}, attempt, time, chain, id FROM releases ORDER BY id", kColumns));
  std::string previous;
  while (query.next()) {
    const std::string chain = query.text(kColumnCount + 2);
    if (link_of(previous, query.event(), query.integer(kColumnCount), query.integer(kColumnCount + 1)) != chain) {
      fail_user("the ledger {} has been tampered with: row {} is not what was written", name_,
                query.integer(kColumnCount + 3));
    }
    previous = chain;
  }
}

}  // namespace sotto::privacy

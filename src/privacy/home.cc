#include "privacy/home.h"

#include "base/error.h"
#include "base/files.h"
#include "privacy/noise/noise_source.h"
#include "settings/toml.h"

#include <nlohmann/json.hpp>

namespace sotto::privacy {
namespace {

using nlohmann::json;

constexpr const char* kBudget = "budget.toml";
constexpr const char* kPolicy = "policy.toml";
constexpr const char* kLedger = "ledger.sqlite";
constexpr const char* kMark = "ledger.mark";
constexpr const char* kNote = "records";  // in the ledger's file: the home's id and records

fs::path promise_file(const fs::path& folder) {
  return fs::exists(folder / kPolicy) ? folder / kPolicy : folder / kBudget;
}

PrivacyTerms read_budget(const fs::path& file) {
  settings::ParsedToml parsed = settings::parse_toml(read_file(file), file.string());
  settings::Section section(std::move(parsed.value), "", parsed.source);
  if (file.filename() == kPolicy) {
    settings::Section budget = section.child("budget");
    return read_promise(budget);
  }
  PrivacyTerms terms = read_promise(section);
  section.finish();
  return terms;
}

void write_mark(const fs::path& folder, const LedgerEnd& end) {
  write_file_atomically(folder / kMark, json{{"rows", end.rows}, {"head", end.head}}.dump() + "\n");
}

LedgerEnd read_mark(const fs::path& file) {
  const json value = json::parse(read_file(file), nullptr, false);
  if (!value.is_object() || !value.contains("rows") || !value["rows"].is_number_integer() || !value.contains("head") ||
      !value["head"].is_string()) {
    fail_user("{} is damaged; put the home's own back", file.string());
  }
  return {value["rows"], value["head"]};
}

void check_mark(const fs::path& folder, const Ledger& ledger, const LedgerEnd& mark) {
  if (ledger.rows() < mark.rows) {
    fail_user("{} is older than its home: it holds {} rows, and {} has seen {}; put the home's own ledger back",
              (folder / kLedger).string(), ledger.rows(), kMark, mark.rows);
  }
  if (ledger.link(mark.rows) != mark.head) {
    fail_user(
        "{} is not the ledger of its home: row {} is not the one that {} has seen; put the home's own ledger back",
        (folder / kLedger).string(), mark.rows, kMark);
  }
}

}  // namespace

bool Home::is_home(const fs::path& folder) {
  return fs::exists(promise_file(folder));
}

void Home::promise(const fs::path& folder, settings::Section words) {
  if (is_home(folder)) return;
  read_promise(words);
  words.finish();
  make_folder(folder);
  write_file_atomically(folder / kBudget, settings::format_toml(words.resolved()));
}

Home::Home(const fs::path& folder) : folder_(fs::absolute(folder).lexically_normal()) {
  open(Ledger::Mode::kRead);
  read_notes();
}

Home::Home(const fs::path& folder, const HomeRecords& records) : folder_(fs::absolute(folder).lexically_normal()) {
  open(Ledger::Mode::kWrite);
  if (ledger_->note(kNote).empty() && ledger_->rows() == 0) {
    std::string id;
    NoiseSource source = NoiseSource::secure();
    for (int i = 0; i < 2; ++i) id += fmt::format("{:016x}", source.bits());
    ledger_->set_note(kNote, json{{"id", id},
                                  {"name", records.name},
                                  {"content", records.content},
                                  {"dealt", records.dealt},
                                  {"clients", records.clients}}
                                 .dump());
  }
  read_notes();
  if (records_.content != records.content) {
    fail_user("the home {} is that of {}, and the records of this run ({}) are others; use another home",
              folder_.string(), records_.name, records.name);
  }
  if (records_.dealt != records.dealt || records_.clients != records.clients) {
    fail_user(
        "the home {} knows its {} clients by the records they hold, and this run deals them otherwise; keep seed, "
        "data.clients and the partition as they were, or use another home",
        folder_.string(), records_.clients);
  }
  ledger_->agree(terms_, HeldTo::kProven);
  if (!fs::exists(folder_ / kMark)) write_mark(folder_, ledger_->durable_end());
  marked_rows_ = ledger_->rows();
}

void Home::open(Ledger::Mode mode) {
  if (!is_home(folder_)) {
    fail_user("{} is not a home: write {} with epsilon, delta and adjacency, what its owner allows over all runs",
              folder_.string(), (folder_ / kBudget).string());
  }
  terms_ = read_budget(promise_file(folder_));
  const bool marked = fs::exists(folder_ / kMark);
  const fs::path file = folder_ / kLedger;
  if (!fs::exists(file)) {
    if (marked) {
      fail_user("the home {} has lost its ledger, so what it has spent is not known; put {} back", folder_.string(),
                file.string());
    }
    if (mode == Ledger::Mode::kRead) fail_user("no run was charged to the home {} yet", folder_.string());
  }
  // Before the ledger, which only grows.
  const LedgerEnd mark = marked ? read_mark(folder_ / kMark) : LedgerEnd();
  ledger_ = std::make_unique<Ledger>(file, mode);
  if (!marked && ledger_->rows() > 0) {
    fail_user("the home {} has lost {}, which says how far its ledger had come; put it back", folder_.string(), kMark);
  }
  check_mark(folder_, *ledger_, mark);
  // What a disk or a hand has changed would make ε too small, or too large.
  ledger_->verify_chain();
  if (ledger_->terms() && *ledger_->terms() != terms_) {
    fail_user("{} says something else than the home has promised: {}; put it back, or use another home",
              promise_file(folder_).string(), to_json(*ledger_->terms()).dump());
  }
}

void Home::read_notes() {
  const json note = json::parse(ledger_->note(kNote), nullptr, false);
  try {
    id_ = note.at("id").get<std::string>();
    records_ = {.name = note.at("name").get<std::string>(),
                .content = note.at("content").get<std::string>(),
                .dealt = note.at("dealt").get<std::string>(),
                .clients = note.at("clients").get<int64_t>()};
  } catch (const json::exception&) {
    fail_user("{} is not the ledger of a home", (folder_ / kLedger).string());
  }
}

void Home::permit_unproven() {
  unproven_permitted_ = true;
  ledger_->permit_clear();
}

void Home::spend(const Event& event, int64_t expected) {
  SOTTO_INVARIANT(!event.run.empty());
  const bool permitted = !event.why_unproven.empty() && unproven_permitted_;
  if (!permitted && is_seen_by(event, settings::word(terms_.observer))) {
    if (!event.why_unproven.empty()) {
      throw BudgetSpent(fmt::format("its home {} promises ε = {:.4g}, and nothing can be proven of '{}': {}",
                                    folder_.string(), terms_.least_budget(), event.what, event.why_unproven));
    }
    if (event.neighbours != terms_.neighbours()) {
      fail_user("the home {} promises {} of a {}, and '{}' is released under {} of a {}; use another home",
                folder_.string(), to_text(terms_.adjacency), settings::word(terms_.unit), event.what,
                to_text(event.neighbours.adjacency), settings::word(event.neighbours.unit));
    }
  }
  try {
    ledger_->spend(event, expected);
  } catch (const BudgetSpent& refusal) {
    throw BudgetSpent(fmt::format("at its home {}, over all runs, {}", folder_.string(), refusal.what()));
  }
}

void Home::commit() {
  const std::lock_guard lock(mutex_);
  ledger_->commit();
  const LedgerEnd end = ledger_->durable_end();
  if (end.rows == marked_rows_) return;
  write_mark(folder_, end);
  marked_rows_ = end.rows;
}

}  // namespace sotto::privacy

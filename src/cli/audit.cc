// sotto audit: tries to break the promise of a run, a config, or everything there is.
#include "artifacts/shared_work.h"
#include "audit/mechanisms.h"
#include "audit/method_audits.h"
#include "audit/method_release.h"
#include "audit/whole_run.h"
#include "base/error.h"
#include "base/files.h"
#include "base/interrupt.h"
#include "base/launch.h"
#include "base/progress.h"
#include "base/table.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/config_options.h"
#include "cli/output.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

namespace sotto::cli {
namespace {

using nlohmann::json;

constexpr double kConfidence = 0.95;
constexpr int64_t kMechanismTrials = 100000, kQuickMechanismTrials = 20000;
constexpr int64_t kMethodTrials = 10000, kQuickMethodTrials = 3000;
constexpr int64_t kReleaseTrials = 2000, kQuickReleaseTrials = 400, kReleasePilots = 16;
constexpr double kMechanismBudgets[] = {1.0, 4.0};

struct AuditOptions {
  run::ConfigSource run;
  bool all = false;
  bool quick = false;
  int64_t client = 0;
  int64_t trials = 0;
  int64_t canaries = 1000;
  uint64_t seed = 1;
  int threads = 0;
  std::string out;
  OutputOptions output;

  int64_t trials_or(int64_t full, int64_t shortened) const {
    if (trials > 0) return trials;
    return quick ? shortened : full;
  }
  audit::TrialOptions trial_options(int64_t full, int64_t shortened) const {
    return {.trials = trials_or(full, shortened),
            .alpha = 1 - kConfidence,
            .seed = seed * 1000003,
            .threads = resolve_threads(threads)};
  }
};

std::string epsilon_text(const json& value) {
  if (value.is_null()) return "∞";
  const auto epsilon = value.get<double>();
  return epsilon < 1000 ? fmt::format("{:.3g}", epsilon) : fmt::format("{:.0f}", epsilon);
}

std::string describe(const json& rows) {
  Table table({"what", "variant", "differs in", "claimed ε", "proven ε", "audited ε ≥", "by", "trials", ""});
  for (const json& row : rows) {
    table.add_row({row["name"], row.value("variant", ""), row["what"], epsilon_text(row["claimed_epsilon"]),
                   epsilon_text(row["proven_epsilon"]), epsilon_text(row["audited_epsilon"]), row["statistic"],
                   fmt::format("{}", row["trials"].get<int64_t>()), row["verdict"]});
  }
  return table.to_string();
}

std::string describe_everything(const json& rows) {
  Table mechanisms({"mechanism", "differs in", "proven ε", "audited ε ≥", "by", ""});
  Table methods({"method", "variant", "claimed ε", "proven ε", "audited ε ≥", "by", "", "known flaw"});
  for (const json& row : rows) {
    const std::string proven = epsilon_text(row["proven_epsilon"]), audited = epsilon_text(row["audited_epsilon"]);
    if (row["kind"] == "mechanism") {
      mechanisms.add_row({row["name"], row["what"], proven, audited, row["ground"], row["verdict"]});
    } else {
      const std::string note = row.value("note", "");
      methods.add_row({row["name"], row["variant"].get<std::string>() + (note.empty() ? "" : ", " + note),
                       epsilon_text(row["claimed_epsilon"]), proven, audited, row["ground"], row["verdict"],
                       row.value("flaw", "")});
    }
  }
  return mechanisms.to_string() + "\n" + methods.to_string();
}

// Every mechanism at every budget, then every method: what is audited, and how.
struct AuditItem {
  std::string name;
  std::function<json()> row;
};

std::vector<AuditItem> everything(const AuditOptions& options) {
  std::vector<AuditItem> items;
  for (const audit::MechanismAudit& mechanism : audit::mechanism_audits()) {
    for (const double epsilon : kMechanismBudgets) {
      items.push_back({mechanism.name, [&options, mechanism, epsilon] {
                         json row = audit::audit(mechanism.at(epsilon, 1e-5),
                                                 options.trial_options(kMechanismTrials, kQuickMechanismTrials))
                                        .to_json();
                         row["kind"] = "mechanism";
                         return row;
                       }});
    }
  }
  for (const audit::MethodAudit& method : audit::method_audits()) {
    items.push_back(
        {method.method, [&options, method] {
           json row = audit::audit(method.make(), options.trial_options(kMethodTrials, kQuickMethodTrials)).to_json();
           row["kind"] = "method";
           if (!method.flaw.empty()) row["flaw"] = method.flaw;
           if (!method.note.empty()) row["note"] = method.note;
           return row;
         }});
  }
  return items;
}

json audit_everything(const AuditOptions& options) {
  json rows = json::array();
  const std::vector<AuditItem> items = everything(options);
  Progress progress("auditing", std::ssize(items));
  if (options.out.empty()) {
    for (const AuditItem& item : items) {
      rows.push_back(item.row());
      progress.advance(1, item.name);
    }
    return rows;
  }
  const auto at = [&](int64_t item) -> const AuditItem& { return items[static_cast<size_t>(item)]; };
  // Rows of other trials, seeds or versions are others.
  const std::string settings = fmt::format("{}-{}-{}", options.quick ? "quick" : "full", options.trials, options.seed);
  for (const std::string& row : artifacts::share({.folder = fs::path(options.out) / settings,
                                .items = std::ssize(items),
                                .threads = 1,
                                .make = [&](int64_t item) { return at(item).row().dump(); },
                                .done = [&](int64_t item) { progress.advance(1, at(item).name); }})) {
    rows.push_back(json::parse(row));
  }
  return rows;
}

// One release, and the whole run where that can be audited.
json audit_run(const AuditOptions& options, const federation::Setup& loaded,
               const std::shared_ptr<const federation::Setup>& setup) {
  json rows = json::array();
  audit::TrialOptions trials = options.trial_options(kReleaseTrials, kQuickReleaseTrials);
  trials.pilots = kReleasePilots;
  json row = audit::audit(audit::release_case(setup, {.client = options.client}), trials).to_json();
  row["client"] = options.client;
  row["what"] = fmt::format("one release: {}", row["what"].get<std::string>());
  rows.push_back(std::move(row));
  const auto& privacy = loaded.spec().privacy;
  const bool records = !privacy || (privacy->unit == privacy::Unit::kRecord && !privacy->trusts_server() &&
                                    privacy->adjacency != privacy::Adjacency::kReplaceSameLabel);
  if (!records || options.canaries == 0) return rows;
  const audit::WholeRunOutcome whole = audit::audit_whole_run(loaded, {.canaries = options.canaries,
                                                                       .seed = options.seed,
                                                                       .alpha = 1 - kConfidence,
                                                                       .threads = resolve_threads(options.threads)});
  json line = whole.to_json();
  line["name"] = loaded.spec().method;
  line["variant"] = settings::word(loaded.spec().variant);
  line["statistic"] = fmt::format("{} of {} guesses right", whole.bound.guesses.right, whole.bound.guesses.made);
  line["verdict"] = audit::to_text(whole.bound.epsilon > whole.proven    ? audit::Verdict::kBroken
                                   : whole.bound.epsilon > whole.claimed ? audit::Verdict::kRefuted
                                                                         : audit::Verdict::kConsistent);
  rows.push_back(std::move(line));
  return rows;
}

json document(const json& rows) {
  return {{"method", "two worlds per release (Clopper–Pearson, curve test) and one run with many canaries"},
          {"confidence", kConfidence},
          {"entries", rows}};
}

void run_audit(const AuditOptions& options) {
  if (options.all == !options.run.config.empty()) {
    fail_user("audit: name a config or a run directory, or say --all");
  }
  if (!options.out.empty() && !options.all) fail_user("--out is for audit --all");
  if (launch().size != 1 && options.all && options.out.empty()) {
    fail_user("audit --all over ranks needs --out FOLDER, which all of them see");
  }
  if (launch().rank > 0 && !options.all) throw artifacts::OthersAtWork("rank 0 audits single runs by itself");
  end_on_interrupt(options.out.empty()
                       ? "stopped; an audit keeps nothing before its end, so the same command begins again"
                       : "stopped; the same command goes on with the rows that are missing");
  json rows;
  if (options.all) {
    rows = audit_everything(options);
  } else {
    const auto setup = std::make_shared<const federation::Setup>(run::load_spec(options.run));
    rows = audit_run(options, *setup, setup);
  }
  if (launch().rank > 0) throw artifacts::OthersAtWork("rank 0 shows the rows");
  if (options.output.json) {
    print_json(document(rows));
  } else {
    print_text(options.all ? describe_everything(rows) : describe(rows));
  }
  // Shown before it is kept: a run that cannot be written to does not cost the result.
  if (const fs::path folder = options.run.config; !options.all && fs::is_directory(folder)) {
    write_file_atomically(folder / "audit.json", document(rows).dump(2) + "\n");
  }
}

}  // namespace

void add_audit(Command& program) {
  auto options = std::make_shared<AuditOptions>();
  Command command =
      program.subcommand("audit", "Attack what a run releases: lower bounds on ε beside what is claimed and proven");
  add_config_options(command, options->run).required(false);
  command.flag("--all", options->all, "every mechanism and method there is, on a small federation in memory");
  command.flag("--quick", options->quick, "fewer trials");
  command.option("--client", options->client, "whose release is audited").at_least(0).shows_default();
  command.option("--trials", options->trials, "trials in each of the two worlds").range(4, 100000000);
  command.option("--canaries", options->canaries, "in the whole run; 0 = audit one release only")
      .range(0, 100000000)
      .shows_default();
  command.option("--seed", options->seed, "of trials and coins").shows_default();
  command.option(
      "--out", options->out,
      "with --all: keeps its rows there, so that several processes can share them and a stopped audit goes on");
  add_threads_option(command, options->threads);
  add_output_options(command, options->output, "what a run's audit.json holds");
  add_example(command, "sotto audit --all --quick");
  command.callback([options] { run_audit(*options); });
}

}  // namespace sotto::cli

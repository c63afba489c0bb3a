#include "cli/console.h"

#include "artifacts/privacy_section.h"
#include "base/log.h"
#include "base/terminal.h"
#include "base/text.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace sotto::cli {
namespace {

using nlohmann::json;
using nlohmann::literals::operator""_json_pointer;

std::string percent(double value) {
  return std::isfinite(value) ? fmt::format("{:.2f}", 100 * value) : "–";
}

std::string percent(const json& value) {
  return value.is_number() ? percent(value.get<double>()) : "–";
}

int64_t clients_per_round(const config::RunSpec& spec) {
  return spec.federation.cohort == 0 ? spec.data.clients : spec.federation.cohort;
}

// ε is worked out for free up to so many seconds, then only while it takes no more than this share of the time.
constexpr double kFreeSeconds = 0.05;
constexpr double kShareOfTime = 0.01;

constexpr int kGap = 2;  // columns between the columns of the table

// Never wider than its column, whatever training came to.
std::string loss_text(double loss) {
  if (!std::isfinite(loss)) return "–";
  return std::abs(loss) < 1000 ? fmt::format("{:.4f}", loss) : fmt::format("{:.1e}", loss);
}

std::string epsilon(double value) {
  return std::isfinite(value) ? fmt::format("{:.4g}", value) : "∞";
}

std::string epsilon(const json& value) {
  if (value.is_null()) return "none";
  if (value["min"] == value["max"]) return fmt::format("{:.4g}", value["max"].get<double>());
  return fmt::format("{:.4g} / {:.4g} / {:.4g} (min / median / max)", value["min"].get<double>(),
                     value["median"].get<double>(), value["max"].get<double>());
}

// What is claimed and proven, or simulated, against one observer.
std::string guarantee(const json& row, privacy::Basis basis) {
  const auto observer = row["observer"].get<std::string>();
  if (!row["proven_epsilon"].is_null()) {
    return fmt::format("claimed ε {}, {} {} against the {}", epsilon(row["claimed_epsilon"]),
                       privacy::epsilon_name(basis), epsilon(row["proven_epsilon"]), observer);
  }
  const std::string claimed =
      row["claimed_epsilon"].is_null() ? "" : fmt::format("claimed ε {}, ", epsilon(row["claimed_epsilon"]));
  return fmt::format("{}no guarantee against the {}: {}", claimed, observer, row["why_unproven"].get<std::string>());
}

}  // namespace

ConsoleWatcher::ConsoleWatcher(const federation::Setup& setup, int64_t rounds_done)
    : spec_(setup.spec()),
      rounds_done_(rounds_done),
      progress_("training", (setup.spec().rounds - rounds_done) * clients_per_round(setup.spec())),
      spending_(artifacts::declared_spending(setup.spec())) {}

double ConsoleWatcher::elapsed() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

std::string ConsoleWatcher::time_left(int64_t round) const {
  const auto done = static_cast<double>(round - rounds_done_);
  return format_duration(elapsed() / done * static_cast<double>(spec_.rounds - round));
}

void ConsoleWatcher::client_done(int64_t round) {
  progress_.advance(1, fmt::format("round {}{}", round, spent_text_));
}

void ConsoleWatcher::update_spent(int64_t round) {
  spent_.reset();
  if (ledger_ == nullptr || !spec_.privacy) return;
  const double begin = elapsed();
  if (spending_seconds_ > kFreeSeconds + kShareOfTime * begin) return;
  spending_.advance_to(round, *ledger_);
  spent_ = spending_.worst();
  spending_seconds_ += elapsed() - begin;
  spent_text_ = fmt::format(", ε {}", epsilon(spent_->proven));
  if (spec_.privacy->budgets.empty()) spent_text_ += fmt::format(" of {:.4g}", spec_.privacy->epsilon);
}

std::vector<ConsoleWatcher::Column> ConsoleWatcher::columns() const {
  using Record = federation::RoundRecord;
  const auto accuracy = [](double federation::Spread::*part) {
    return [part](const Record& r) { return percent(r.evaluation->over(&federation::ClientScore::accuracy).*part); };
  };
  std::vector<Column> all = {
      {"round", 6, 9, [](const Record& r) { return std::to_string(r.round); }},
      {"uploads", 7, 2, [](const Record& r) { return std::to_string(r.uploads); }},
      {"loss", 8, 6, [](const Record& r) { return loss_text(r.train_loss); }},
      {"accuracy %", 10, 9, accuracy(&federation::Spread::mean)},
      {"± std", 6, 3, accuracy(&federation::Spread::std)},
      {"worst %", 7, 7, accuracy(&federation::Spread::worst)},
      {"global %", 8, 5, [](const Record& r) { return percent(r.evaluation->global_accuracy); }}};
  if (ledger_ != nullptr && spec_.privacy) {
    all.push_back({"claimed ε", 9, 6, [this](const Record&) { return spent_ ? epsilon(spent_->claimed) : "–"; }});
    const std::string title = privacy::epsilon_name(privacy::basis_of(spec_.privacy->generator));
    all.push_back({title, static_cast<int>(display_width(title)), 8,
                   [this](const Record&) { return spent_ ? epsilon(spent_->proven) : "–"; }});
  }
  all.push_back({"s/round", 7, 4, [](const Record& r) { return fmt::format("{:.2f}", r.seconds); }});
  all.push_back({"left", 11, 1, [this](const Record& r) { return time_left(r.round); }});

  const auto width = [&] {
    return std::accumulate(all.begin(), all.end(), -kGap,
                           [](int sum, const Column& c) { return sum + c.width + kGap; });
  };
  const auto less_important = [](const Column& a, const Column& b) { return a.importance < b.importance; };
  while (is_interactive() && all.size() > 1 && width() >= terminal_width()) {
    all.erase(std::min_element(all.begin(), all.end(), less_important));
  }
  return all;
}

void ConsoleWatcher::round(const federation::RoundRecord& record) {
  update_spent(record.round);
  if (!record.evaluation) return;
  const auto row = [this](const auto& cell) {
    std::string text;
    for (const Column& column : columns_) {
      const std::string value = cell(column);
      const auto used = static_cast<int>(display_width(value));
      text +=
          std::string(static_cast<size_t>(std::max(0, column.width - used) + (text.empty() ? 0 : kGap)), ' ') + value;
    }
    return text;
  };
  if (columns_.empty()) {
    columns_ = columns();
    info("{}", styled(row([](const Column& column) { return column.title; }), Style::kBold));
  }
  info("{}", row([&](const Column& column) { return column.cell(record); }));
}

std::string describe_summary(const json& summary) {
  const json& accuracy = summary["accuracy"];
  const json& privacy = summary["privacy"];
  std::string text = fmt::format("accuracy      {} % mean over clients (± {}, worst {})\n", percent(accuracy["mean"]),
                                 percent(accuracy["std"]), percent(accuracy["worst"]));
  if (summary["accuracy_global"].is_number()) {
    text += fmt::format("global model  {} %\n", percent(summary["accuracy_global"]));
  }
  if (summary.contains("auroc")) {
    text += fmt::format("AUROC         {:.4f} mean over clients\n", summary["auroc"]["mean"].get<double>());
  }
  if (summary.contains("neighbour_accuracy")) {
    text += fmt::format("own classes   {} %, others' classes {} %\n",
                        percent(summary.value("/local_accuracy/mean"_json_pointer, json())),
                        percent(summary["neighbour_accuracy"]["mean"]));
  }
  if (summary.contains("accuracy_per_domain")) {
    text += "per domain    ";
    for (const auto& [domain, value] : summary["accuracy_per_domain"].items())
      text += fmt::format("{} {} %  ", domain, percent(value));
    text.erase(text.find_last_not_of(' ') + 1);
    text += "\n";
  }
  if (const json abstained = summary.value("abstained", json::object()); !abstained.empty()) {
    std::vector<std::string> clients;
    for (const auto& [client, times] : abstained.items())
      clients.push_back(fmt::format("{} ({}×)", client, times.dump()));
    constexpr size_t kListed = 8;
    const size_t more = clients.size() - std::min(clients.size(), kListed);
    clients.resize(std::min(clients.size(), kListed));
    text += fmt::format("abstained     {}{}: their budgets were spent\n", join(clients, ", "),
                        more == 0 ? "" : fmt::format(" and {} more clients", more));
  }
  text += fmt::format("speed         {:.0f} samples/s over {:.1f} s of training\n",
                      summary["samples_per_second"].get<double>(), summary["seconds"].get<double>());
  const privacy::Basis basis = artifacts::basis_in(summary);
  text += "privacy       " + guarantee(privacy, basis) + "\n";
  for (const json& other : privacy["observers"]) {
    if (other["observer"] == privacy["observer"] || other["proven_epsilon"] == privacy["proven_epsilon"]) continue;
    text += "              " + guarantee(other, basis) + "\n";
  }
  const auto is_finite = [](const json& row) { return !row["proven_epsilon"].is_null(); };
  const json why = privacy.value("basis_why", json());
  if (!why.is_null() && std::any_of(privacy["observers"].begin(), privacy["observers"].end(), is_finite)) {
    text += fmt::format("              {}: {}\n", settings::word(basis), why.get<std::string>());
  }
  return text;
}

}  // namespace sotto::cli

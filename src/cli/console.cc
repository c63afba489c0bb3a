#include "cli/console.h"

#include "artifacts/privacy_section.h"
#include "base/log.h"
#include "base/natural_order.h"
#include "base/terminal.h"
#include "base/text.h"
#include "cli/labelled_line.h"
#include "cli/output.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace sotto::cli {
namespace {

std::string percent(double value) {
  return std::isfinite(value) ? fmt::format("{:.2f}", 100 * value) : "–";
}

int64_t clients_per_round(const config::RunSpec& spec) {
  return spec.federation.cohort == 0 ? spec.data.clients : spec.federation.cohort;
}

// ε is worked out for free up to so many seconds, then only while it takes no more than this share of the time.
constexpr double kFreeSeconds = 0.5;
constexpr double kShareOfTime = 0.01;

constexpr size_t kTextColumn = 14;  // of a summary's lines

constexpr int kGap = 2;  // columns between the columns of the table

// Never wider than its column, whatever training came to.
std::string loss_text(double loss) {
  if (!std::isfinite(loss)) return "–";
  return std::abs(loss) < 1000 ? fmt::format("{:.4f}", loss) : fmt::format("{:.1e}", loss);
}

std::string epsilon(double value) {
  return std::isfinite(value) ? fmt::format("{:.4g}", value) : "∞";
}

std::string epsilon(const std::optional<artifacts::EpsilonSpread>& spread) {
  if (!spread) return "none";
  const std::string least = epsilon(spread->min);
  const std::string most = epsilon(spread->max);
  if (least == most) return most;
  return fmt::format("{} / {} / {} (min / median / max)", least, epsilon(spread->median), most);
}

// What is claimed and proven, or simulated, against one observer.
std::string guarantee(const std::string& label, const artifacts::SpentAgainst& spent, privacy::Basis basis) {
  if (spent.proven) {
    const std::string claimed = fmt::format("claimed ε {},", epsilon(spent.claimed));
    const std::string proven =
        fmt::format("{} {} against the {}", privacy::epsilon_name(basis), epsilon(spent.proven), spent.observer);
    if (kTextColumn + display_width(claimed) + 1 + display_width(proven) <= kLine) {
      return labelled_line(label, claimed + " " + proven, kTextColumn);
    }
    return labelled_line(label, claimed, kTextColumn) + labelled_line("", proven, kTextColumn);
  }
  const std::string claimed = spent.claimed ? fmt::format("claimed ε {}, ", epsilon(spent.claimed)) : "";
  return labelled_line(label,
                       fmt::format("{}no guarantee against the {}: {}", claimed, spent.observer, spent.why_unproven),
                       kTextColumn);
}

// In columns that line up, as many as fit a line of 80 characters, from left to right in the order of their names.
std::string per_domain(const std::map<std::string, double>& accuracies) {
  constexpr size_t kIndent = kTextColumn, kBetween = 3;
  std::vector<std::string> names;
  size_t widest = 0;
  for (const auto& [domain, value] : accuracies) {
    names.push_back(domain);
    widest = std::max(widest, display_width(domain));
  }
  std::sort(names.begin(), names.end(), naturally_before);
  const size_t cell = widest + std::string_view(" 100.00 %").size() + kBetween;
  const size_t columns = std::max<size_t>(1, (kLine - kIndent + kBetween) / cell);
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    const bool starts_line = i % columns == 0, ends_line = i % columns == columns - 1 || i + 1 == names.size();
    if (starts_line) text += fmt::format("{:<{}}", i == 0 ? "per domain" : "", kIndent);
    const std::string padding(widest - display_width(names[i]), ' ');
    text += fmt::format("{}{} {:>6} %{}", names[i], padding, percent(accuracies.at(names[i])),
                        ends_line ? "\n" : std::string(kBetween, ' '));
  }
  return text;
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
  if (spec_.federation.global_test > 0) {
    all.push_back({"all classes %", 13, 5, [](const Record& r) {
                     return percent(r.evaluation->over(&federation::ClientScore::global_test_accuracy).mean);
                   }});
  }
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

std::string describe_summary(const artifacts::RunSummary& summary) {
  using federation::ClientScore;
  const federation::Evaluation& evaluation = summary.evaluation;
  const federation::Spread accuracy = evaluation.over(&ClientScore::accuracy);
  std::string text = fmt::format("accuracy      {} % mean over clients (± {}, worst {})\n", percent(accuracy.mean),
                                 percent(accuracy.std), percent(accuracy.worst));
  if (std::isfinite(evaluation.global_accuracy)) {
    text += fmt::format("global model  {} %\n", percent(evaluation.global_accuracy));
  }
  if (const federation::Spread everywhere = evaluation.over(&ClientScore::global_test_accuracy);
      std::isfinite(everywhere.mean)) {
    text += fmt::format("global test   {} % mean over clients (± {}, worst {})\n", percent(everywhere.mean),
                        percent(everywhere.std), percent(everywhere.worst));
  }
  if (const double validation = evaluation.over(&ClientScore::validation_accuracy).mean; std::isfinite(validation)) {
    text += fmt::format("validation    {} % mean over clients\n", percent(validation));
  }
  if (const double auroc = evaluation.over(&ClientScore::auroc).mean; std::isfinite(auroc)) {
    text += fmt::format("AUROC         {:.4f} mean over clients\n", auroc);
  }
  if (const double others = evaluation.over(&ClientScore::neighbour_accuracy).mean; std::isfinite(others)) {
    text += fmt::format("own classes   {} %, others' classes {} %\n",
                        percent(evaluation.over(&ClientScore::local_accuracy).mean), percent(others));
  }
  if (!evaluation.domain_accuracy.empty()) {
    text += per_domain(evaluation.domain_accuracy);
  }
  if (!summary.abstained.empty()) {
    std::vector<std::string> clients;
    for (const auto& [client, times] : summary.abstained) clients.push_back(fmt::format("{} ({}×)", client, times));
    constexpr size_t kListed = 8;
    const size_t more = clients.size() - std::min(clients.size(), kListed);
    clients.resize(std::min(clients.size(), kListed));
    text += labelled_line("abstained",
                          fmt::format("{}{}: their budgets were spent", join(clients, ", "),
                                      more == 0 ? "" : fmt::format(" and {} more clients", more)),
                          kTextColumn);
  }
  text += fmt::format("speed         {:.0f} samples/s over {:.1f} s of training\n", summary.samples_per_second,
                      summary.seconds);
  const artifacts::PrivacySummary& privacy = summary.privacy;
  text += guarantee("privacy", privacy.declared, privacy.basis);
  bool any_finite = false;
  for (const artifacts::SpentAgainst& other : privacy.observers) {
    any_finite = any_finite || other.proven;
    if (other.observer == privacy.declared.observer || other.proven == privacy.declared.proven) continue;
    text += guarantee("", other, privacy.basis);
  }
  if (!privacy.basis_why.empty() && any_finite) {
    text += labelled_line("", fmt::format("{}: {}", settings::word(privacy.basis), privacy.basis_why), kTextColumn);
  }
  return text;
}

}  // namespace sotto::cli

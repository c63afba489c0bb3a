#include "cli/console.h"

#include "base/log.h"
#include "base/table.h"

#include <nlohmann/json.hpp>

#include <cmath>

namespace sotto::cli {
namespace {

using nlohmann::json;

std::string percent(double value) {
  return std::isfinite(value) ? fmt::format("{:.2f}", 100 * value) : "–";
}

std::string percent(const json& value) {
  return value.is_number() ? percent(value.get<double>()) : "–";
}

int64_t clients_per_round(const config::RunSpec& spec) {
  return spec.federation.cohort == 0 ? spec.data.clients : spec.federation.cohort;
}

std::string epsilon(const json& value) {
  if (value.is_null()) return "none";
  if (value["min"] == value["max"]) return fmt::format("{:.4g}", value["max"].get<double>());
  return fmt::format("{:.4g} / {:.4g} / {:.4g} (min / median / max)", value["min"].get<double>(),
                     value["median"].get<double>(), value["max"].get<double>());
}

// What is claimed and proven against one observer.
std::string guarantee(const json& row) {
  const auto observer = row["observer"].get<std::string>();
  if (!row["proven_epsilon"].is_null()) {
    return fmt::format("claimed ε {}, proven ε {} against the {}", epsilon(row["claimed_epsilon"]),
                       epsilon(row["proven_epsilon"]), observer);
  }
  const std::string claimed =
      row["claimed_epsilon"].is_null() ? "" : fmt::format("claimed ε {}, ", epsilon(row["claimed_epsilon"]));
  return fmt::format("{}no guarantee against the {}: {}", claimed, observer, row["why_unproven"].get<std::string>());
}

}  // namespace

ConsoleWatcher::ConsoleWatcher(const federation::Setup& setup, int64_t rounds_done)
    : progress_("training", (setup.spec.rounds - rounds_done) * clients_per_round(setup.spec)) {}

void ConsoleWatcher::client_done(int64_t round, int64_t) {
  progress_.advance(1, fmt::format("round {}", round));
}

void ConsoleWatcher::round(const federation::RoundRecord& record) {
  if (!record.evaluation) return;
  if (!header_printed_) {
    info("{:>6}  {:>7}  {:>9}  {:>10}  {:>6}  {:>7}  {:>8}  {:>8}", "round", "uploads", "loss", "accuracy %", "± std",
         "worst %", "global %", "s/round");
    header_printed_ = true;
  }
  const federation::Spread accuracy = record.evaluation->over(&federation::ClientScore::accuracy);
  info("{:>6}  {:>7}  {:>9.4f}  {:>10}  {:>6}  {:>7}  {:>8}  {:>8.2f}", record.round, record.uploads, record.train_loss,
       percent(accuracy.mean), percent(accuracy.std), percent(accuracy.worst),
       percent(record.evaluation->global_accuracy), record.seconds);
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
    text += fmt::format("own classes   {} %, others' classes {} %\n", percent(summary["local_accuracy"]["mean"]),
                        percent(summary["neighbour_accuracy"]["mean"]));
  }
  if (summary.contains("accuracy_per_domain")) {
    text += "per domain    ";
    for (const auto& [domain, value] : summary["accuracy_per_domain"].items())
      text += fmt::format("{} {} %  ", domain, percent(value));
    text.erase(text.find_last_not_of(' ') + 1);
    text += "\n";
  }
  text += fmt::format("speed         {:.0f} samples/s over {:.1f} s of training\n",
                      summary["samples_per_second"].get<double>(), summary["seconds"].get<double>());
  text += "privacy       " + guarantee(privacy) + "\n";
  for (const json& other : privacy["observers"]) {
    if (other["observer"] == privacy["observer"] || other["proven_epsilon"] == privacy["proven_epsilon"]) continue;
    text += "              " + guarantee(other) + "\n";
  }
  return text;
}

}  // namespace sotto::cli

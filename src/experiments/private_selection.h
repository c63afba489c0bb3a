// Private selection: a sweep that shows its best run and nothing else, at a cost that is stated beforehand
// (docs/proofs/private-selection.md).
//
// A secret number of trials is drawn. Each draws a cell of the grid, runs it with fresh noise, and gets a noisy score:
// how many held-out records the global model gets right, or where clients are protected the mean of its accuracies on
// them, plus discrete Gaussian noise. The run with the best score is kept; every other one is removed as soon as it has
// lost.
#pragma once

#include "experiments/sweep_options.h"
#include "privacy/accounting/private_selection.h"
#include "run/config_source.h"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <optional>
#include <string>

namespace sotto::experiments {

// How the number of trials is drawn.
enum class TrialNumber { kLogarithmic, kGeometric, kPoisson };
constexpr auto choices(TrialNumber) {
  return std::to_array<settings::Choice<TrialNumber>>({{TrialNumber::kLogarithmic, "logarithmic"},
                                                       {TrialNumber::kGeometric, "geometric"},
                                                       {TrialNumber::kPoisson, "poisson"}});
}

struct SelectionRequest {
  run::ConfigSource config;
  SweepOptions options;  // its rows, grid and quick; the config's seed deals the records in every trial
  TrialNumber number = TrialNumber::kLogarithmic;
  double mean_trials = 10;
  double score_noise = 0.01;     // standard deviation of the noise on the accuracy that is compared
  std::filesystem::path folder;  // must not exist: it will hold best/ and selection.json
  int threads = 1;
};

struct Selected {
  std::string row;          // "" if the sweep has no named rows
  nlohmann::json settings;  // key → value as written
  double score = 0;         // with its noise
  std::filesystem::path run;
};

struct Selection {
  double epsilon = 0;  // of all that is shown: the chosen settings, their run's releases and its score
  double delta = 0;
  std::string observer;
  TrialNumber number = TrialNumber::kLogarithmic;
  double mean_trials = 0;
  std::string score;  // of the summary: which value is compared, a mean over clients where these are protected
  double score_noise = 0;
  std::optional<Selected> best = std::nullopt;  // nothing: no trial was drawn, which a Poisson number may be
};

// A UserError, before anything is run, unless every cell is private with secure noise and under the same promise, has a
// global model, and releases nothing that cannot be proven. Throws Interrupted after Ctrl-C: nothing is selected, and
// nothing is left of the trials.
Selection select_privately(const SelectionRequest& request);

// What selection.json holds.
nlohmann::json to_json(const Selection& selection);

}  // namespace sotto::experiments

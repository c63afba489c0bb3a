// A sweep: every cell of a grid of settings, run with several seeds, and how the cells compare.
#pragma once

#include "experiments/selection_cost.h"
#include "experiments/sweep_options.h"
#include "privacy/basis.h"
#include "run/config_source.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace sotto::experiments {

struct SweepRequest {
  run::ConfigSource config;
  SweepOptions options;          // as they are to be used: `quick` is set in every run, `quick_grid` is not looked at
  bool quick = false;            // noted in the table, nothing else
  std::filesystem::path folder;  // for the runs and sweep.json
  int threads = 1;               // runs at once
};

// One cell of the grid and what became of its runs. Only finished runs with a finite value of the metric count: seeds,
// values and runs are theirs, in this order, and so are both ε.
struct CellResult {
  std::string row;                              // its name; "" if the sweep has no named rows
  nlohmann::json settings;                      // key → value as written
  std::optional<double> claimed_epsilon = 0.0;  // the largest of any client and seed; nothing: one has no finite ε
  std::optional<double> proven_epsilon = 0.0;
  privacy::Basis basis = privacy::Basis::kProven;  // the weakest of its runs: whether proven_epsilon is a theorem
  std::vector<uint64_t> seeds;
  std::vector<double> values;
  std::vector<std::filesystem::path> runs;
  std::vector<std::string> failures;  // what stopped runs
  std::optional<double> mean;         // nothing: there is no value
  std::optional<double> std;          // nothing: there are fewer than two
  std::optional<double> p_value;      // nothing: there is nothing to compare
  std::optional<size_t> against;      // the cell it is compared with; nothing: it is a reference, or none was named
};

struct SweepTable {
  std::string metric;
  std::string against;  // as it was asked for; "" = nothing is compared
  bool quick = false;
  std::vector<CellResult> cells;
  std::optional<SelectionCost> selection;  // nothing: no run of it is private, or there is only one
  std::string first_failure;               // in the order in which runs were planned; "" = none failed
};

// Runs what is not finished yet in the folder, and writes sweep.json there. A run that fails is part of the table;
// options that make no sense are a UserError. Throws OthersAtWork (artifacts/shared_work.h), and Interrupted after Ctrl-C (base/interrupt.h): the same request
// continues.
SweepTable run_sweep(const SweepRequest& request);

// What sweep.json holds.
nlohmann::json to_json(const SweepTable& table);

}  // namespace sotto::experiments

// A fit: runs on public data that tell which clipping bound suits which budget, and the curve through the best.
#pragma once

#include "experiments/curve_file.h"
#include "experiments/fit_grid.h"
#include "methods/dpsgd/curve_fit.h"
#include "run/config_source.h"

#include <nlohmann/json.hpp>

#include <filesystem>

namespace sotto::experiments {

struct FitRequest {
  run::ConfigSource config;
  FitScope scope;
  std::filesystem::path folder;  // for curve.json and curve.png; its folder runs/ is for the runs
  int threads = 1;               // runs at once
};

struct FitResult {
  FitGrid grid;
  FitMatrix matrix;
  methods::CurveFit fitted;
  nlohmann::ordered_json content;  // of curve.json
  std::filesystem::path file;      // curve.json
};

// Runs what is not finished yet in the folder, and writes the curve and its picture there. Settings that no curve can
// be fitted with, and a run that fails, are UserErrors. Throws Interrupted after Ctrl-C (base/interrupt.h): the same
// request continues.
FitResult run_fit(const FitRequest& request);

}  // namespace sotto::experiments

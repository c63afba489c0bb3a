// What `sotto fit` tries: budgets × bounds × repeats, each a run of the user's own settings on proxy data.
#pragma once

#include "config/run_spec.h"
#include "experiments/fit_options.h"
#include "run/config_source.h"

#include <string>
#include <vector>

namespace sotto::experiments {

struct FitScope {
  bool quick = false;      // at most 3 budgets, 3 bounds and 3 rounds, once
  bool same_data = false;  // the proxy may be the clients' own dataset
};

struct FitGrid {
  config::RunSpec spec;  // the user's settings, with a constant curve in place of the one that is looked for
  FitOptions options;
  std::vector<double> budgets;  // ascending, distinct
  std::vector<double> bounds;   // ascending, distinct
  int64_t rounds = 0;
  int64_t repeats = 0;
  bool quick = false;
  // By name, path or content, as far as both are here.
  bool proxy_is_client_data = false;

  // Of all bounds that are next to each other.
  double largest_ratio() const;
};

// Reads CONFIG. Settings that no curve can be fitted with are UserErrors; that the proxy is the clients' dataset is one
// unless `scope` allows it.
FitGrid plan_fit(const run::ConfigSource& config, const FitScope& scope);

// One run: the user's settings but for the data, the sizes that [fit] gives, one budget for all, a constant bound, and
// noise that repeats (the data is public). Fewer clients: the cohort shrinks with them, so that each takes part as
// often as online.
config::RunSpec simulation(const run::ConfigSource& config, const FitGrid& grid, double budget, double bound,
                           int64_t seed);

}  // namespace sotto::experiments

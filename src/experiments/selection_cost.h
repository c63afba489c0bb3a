// What it costs to choose among the runs of a sweep: each run's ε is that of one run, and whoever picks the best has
// looked at all of them.
#pragma once

#include "experiments/jobs.h"
#include "privacy/accounting/private_selection.h"
#include "privacy/basis.h"
#include "privacy/guarantee.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sotto::experiments {

// At the runs' own δ, against the observer they name.
struct SelectionCost {
  int64_t runs = 0;
  double delta = 0;
  std::string observer;
  privacy::Basis basis = privacy::Basis::kProven;  // the weakest of the runs
  // Of whoever sees what every run released, whatever client holds a record in each; nothing: it is not finite.
  std::optional<double> all_epsilon;
  // Of showing only the best of a logarithmic number of such runs, as many on average, if their score had been private.
  std::optional<double> best_epsilon;
  std::string why_none;  // why there is no ε at all; "" if there is
};

// Of the finished runs. Nothing if there are fewer than two or none of them is private.
std::optional<SelectionCost> selection_cost(const std::vector<Job>& jobs);

nlohmann::json to_json(const SelectionCost& cost);

// What a run may cost a record: the releases of one client, as far as they are not part of another's. Costs that
// nothing is proven of must not be among them.
std::vector<privacy::TrialCost> alternatives(const std::vector<privacy::Tally>& clients);

}  // namespace sotto::experiments

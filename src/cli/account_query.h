// Questions to the accountants as JSON objects: what `sotto account` and `sotto calibrate` read from options, from a
// file of events, and from lines of a batch.
//
// Keys: mechanism (gaussian, laplace, pure, approximate), noise_multiplier, step_epsilon, step_delta, steps, sampling
// (none, poisson, allocation), sampling_rate, batches, epochs, adjacency; compose (a list of such events); delta, epsilon,
// method, order. Null means absent. Without `sampling` it is poisson if there is a rate. Allocation takes batches and
// epochs instead of a rate and steps.
#pragma once

#include "privacy/accounting/accountant.h"

#include <nlohmann/json_fwd.hpp>

#include <optional>
#include <string>
#include <vector>

namespace sotto::cli {

struct AccountQuery {
  std::vector<privacy::Steps> steps;
  std::optional<double> delta;
  std::optional<double> epsilon;
  std::optional<double> order;
  std::optional<privacy::Method> method;
  std::string adjacency = "any";  // as stated
};

// A UserError with one reason if anything is unknown, missing, of the wrong type or out of range.
AccountQuery parse_account_query(const nlohmann::json& object);

struct CalibrateQuery {
  privacy::Step shape;
  int64_t count = 1;
  std::vector<privacy::Steps> others;
  double epsilon = 0;
  double delta = 0;
  privacy::Method method = privacy::Method::kExact;
  std::string adjacency = "any";
};

CalibrateQuery parse_calibrate_query(const nlohmann::json& object);

// {epsilon, delta, method, adjacency}, with log_delta where δ was asked for, or {rdp, order} for an order.
nlohmann::json answer(const AccountQuery& query);
// {noise_multiplier, epsilon, delta, method, adjacency}.
nlohmann::json answer(const CalibrateQuery& query);

// Events from a file that holds a JSON list, or one JSON object a line.
nlohmann::json read_events(const std::string& file);

}  // namespace sotto::cli

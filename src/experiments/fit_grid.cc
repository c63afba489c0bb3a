#include "experiments/fit_grid.h"

#include "base/error.h"
#include "base/files.h"
#include "data/custom.h"
#include "data/origin.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

namespace sotto::experiments {
namespace {

using nlohmann::json;

std::string constant_curve(double bound) {
  return fmt::format("method.curve={{family=\"constant\",coefficients=[{}]}}", bound);
}

// TOML and JSON write texts alike.
std::string setting(const std::string& key, const std::string& text) {
  return fmt::format("{}={}", key, json(text).dump());
}

// The method of a config that is in order but for having no curve.
std::optional<std::string> method_without_curve(const run::ConfigSource& config) {
  try {
    const config::RunSpec spec = run::load_spec(config);
    if (!json::parse(spec.method_options).contains("curve")) return spec.method;
  } catch (const UserError&) {
  }
  return std::nullopt;
}

// The curve that the config names is often the very one that is about to be made.
config::RunSpec load_without_curve(const run::ConfigSource& config) {
  try {
    return run::load_spec(config, {constant_curve(1.0)});
  } catch (const UserError&) {
    const auto method = method_without_curve(config);
    if (!method) throw;
    fail_user("{}: method {} has no clipping curve that could be fitted; pac-dp has one", config.config, *method);
  }
}

std::vector<double> distinct(const std::vector<double>& values) {
  const std::set<double> sorted(values.begin(), values.end());
  return {sorted.begin(), sorted.end()};
}

// The first, the middle one and the last.
std::vector<double> three_of(const std::vector<double>& values) {
  if (values.size() <= 3) return values;
  return {values.front(), values[values.size() / 2], values.back()};
}

std::vector<double> budgets_of(const config::RunSpec& spec, const FitOptions& fit) {
  if (!fit.budgets.empty()) return fit.budgets;
  return spec.privacy->budgets.empty() ? std::vector{spec.privacy->epsilon} : spec.privacy->budgets;
}

int64_t scaled_cohort(const config::RunSpec& spec, int64_t clients) {
  const double share = static_cast<double>(spec.federation.cohort) / static_cast<double>(spec.data.clients);
  return std::clamp<int64_t>(std::llround(share * static_cast<double>(clients)), 1, clients);
}

bool is_path(const std::string& proxy) {
  return fs::exists(proxy);
}

bool is_client_data(const std::string& proxy, const data::DataOptions& clients) {
  data::DataOptions stand_in;
  stand_in.name = is_path(proxy) ? "custom" : proxy;
  stand_in.path = is_path(proxy) ? proxy : "";
  if (is_path(proxy) && data::may_be_table(proxy)) stand_in.schema = clients.schema;
  if (data::common_part(data::named_origin(stand_in), data::named_origin(clients))) return true;
  try {
    return data::common_part(data::origin_of(stand_in), data::origin_of(clients)).has_value();
  } catch (const UserError&) {
    return false;  // one of them is not here; if it is needed, its loading says so
  }
}

}  // namespace

double FitGrid::largest_ratio() const {
  double largest = 1;
  for (size_t j = 1; j < bounds.size(); ++j) largest = std::max(largest, bounds[j] / bounds[j - 1]);
  return largest;
}

FitGrid plan_fit(const run::ConfigSource& config, const FitScope& scope) {
  FitGrid grid;
  grid.spec = load_without_curve(config);
  const std::string& file = config.config;
  const auto table = run::load_table(config, config::kFitTable);
  if (!table) {
    fail_user(
        "{}: there is no table [fit]; write for example [fit] proxy = \"synthetic-digits\", bounds = [0.1, 1, 10]",
        file);
  }
  if (!grid.spec.privacy) fail_user("{}: there is no table [privacy], so that no noise would be simulated", file);
  grid.options = read_fit_options(*table);
  const FitOptions& fit = grid.options;
  if (fit.proxy.empty()) fail_user("{}: fit.proxy is not set; name a public dataset, or the path of one", file);
  if (fit.bounds.empty()) fail_user("{}: fit.bounds is not set; write for example bounds = [0.1, 0.3, 1, 3, 10]", file);
  grid.proxy_is_client_data = is_client_data(fit.proxy, grid.spec.data);
  if (grid.proxy_is_client_data && !scope.same_data) {
    fail_user(
        "{}: fit.proxy is the clients' own dataset, but proxy data must be public: what is learnt from it is not "
        "accounted for; name another, or add --same-data if {} is public",
        file, fit.proxy);
  }
  grid.quick = scope.quick;
  grid.budgets = distinct(budgets_of(grid.spec, fit));
  grid.bounds = distinct(fit.bounds);
  grid.rounds = fit.rounds > 0 ? fit.rounds : grid.spec.rounds;
  grid.repeats = fit.repeats;
  if (scope.quick) {
    constexpr int64_t kQuickRounds = 3;
    grid.budgets = three_of(grid.budgets);
    grid.bounds = three_of(grid.bounds);
    grid.rounds = std::min(grid.rounds, kQuickRounds);
    grid.repeats = 1;
  }
  return grid;
}

config::RunSpec simulation(const run::ConfigSource& config, const FitGrid& grid, double budget, double bound,
                           int64_t seed) {
  const FitOptions& fit = grid.options;
  const bool path = is_path(fit.proxy);
  std::vector<std::string> overrides = {
      setting("data.name", path ? "custom" : fit.proxy),
      setting("data.path", path ? fit.proxy : ""),
      "data.otherwise=[]",  // these stand in for the clients' data, not for the proxy
      fmt::format("seed={}", seed),
      fmt::format("rounds={}", grid.rounds),
      fmt::format("federation.eval_every={}", grid.rounds),
      fmt::format("privacy.epsilon={}", budget),
      "privacy.budgets=[]",
      "privacy.budget_shares=[]",
      setting("privacy.noise", "replay"),
      constant_curve(bound),
      "record.uploads=false",
  };
  // Of the clients' columns; a proxy that is a table has the same.
  if (!path || !data::may_be_table(fit.proxy)) overrides.push_back(setting("data.schema", ""));
  if (fit.limit > 0) overrides.push_back(fmt::format("data.limit={}", fit.limit));
  if (fit.clients > 0) {
    overrides.push_back(fmt::format("data.clients={}", fit.clients));
    if (grid.spec.federation.cohort > 0) {
      overrides.push_back(fmt::format("federation.cohort={}", scaled_cohort(grid.spec, fit.clients)));
    }
  }
  return run::load_spec(config, overrides);
}

}  // namespace sotto::experiments

#include "experiments/curve_file.h"

#include "base/table.h"
#include "base/text.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

namespace sotto::experiments {
namespace {

using nlohmann::ordered_json;

constexpr int kCurveDigits = 10;
constexpr int kDigits = 6;

double rounded(double value, int digits) {
  return std::stod(fmt::format("{:.{}g}", value, digits));
}

// Every number in it that is not whole.
ordered_json rounded(ordered_json value, int digits) {
  if (value.is_number_float()) {
    const double number = value.get<double>();
    return std::isfinite(number) ? ordered_json(rounded(number, digits)) : ordered_json(nullptr);
  }
  if (value.is_structured()) {
    for (auto& item : value) item = rounded(item, digits);
  }
  return value;
}

ordered_json optional(const std::optional<double>& value) {
  return value ? ordered_json(*value) : ordered_json(nullptr);
}

ordered_json family_json(const methods::FamilyFit& family) {
  ordered_json value = {{"family", settings::word(family.family)}};
  if (family.curve && !family.curve->coefficients.empty()) value["coefficients"] = family.curve->coefficients;
  if (family.curve && !family.curve->knots.empty()) {
    value["knots"] = family.curve->knots;
    value["values"] = family.curve->values;
  }
  value["r_squared"] = optional(family.r_squared);
  value["leave_one_out"] = optional(family.leave_one_out);
  if (!family.why_not.empty()) value["why_not"] = family.why_not;
  return value;
}

bool was_dropped(const methods::CurveFit& fit, double x) {
  return std::any_of(fit.dropped.begin(), fit.dropped.end(), [&](const auto& point) { return point.x == x; });
}

ordered_json fit_json(const FitGrid& grid, const FitMatrix& matrix, const methods::CurveFit& fit) {
  ordered_json families = ordered_json::array();
  for (const auto& family : fit.families) families.push_back(family_json(family));
  ordered_json points = ordered_json::array();
  for (size_t i = 0; i < grid.budgets.size(); ++i) {
    points.push_back({{"epsilon", grid.budgets[i]},
                      {"noise", matrix.signal_to_noise[i]},
                      {"bound", grid.bounds[matrix.best[i]]},
                      {"above_chance", bool(matrix.clears[i])},
                      {"kept", matrix.clears[i] && !was_dropped(fit, matrix.x[i])}});
  }
  return {{"quick", grid.quick},
          {"chosen", settings::word(fit.chosen.family)},
          {"monotone", grid.options.monotone},
          {"families", families},
          {"points", points},
          {"matrix",
           {{"repeats", grid.repeats},
            {"chance", matrix.chance},
            {"budgets", grid.budgets},
            {"bounds", grid.bounds},
            {"mean", matrix.mean},
            {"std", matrix.std}}}};
}

ordered_json mechanism_json(const FitGrid& grid, const config::RunSpec& simulated) {
  return {{"method", simulated.method},
          {"variant", settings::word(simulated.variant)},
          {"adjacency", simulated.privacy->adjacency},
          {"delta", simulated.privacy->delta},
          {"model", simulated.model.name},
          {"batch", simulated.federation.batch},
          {"epochs", simulated.federation.local_epochs},
          {"rounds", simulated.rounds},
          {"clients", simulated.data.clients},
          {"cohort", simulated.federation.cohort == 0 ? simulated.data.clients : simulated.federation.cohort},
          {"proxy", grid.options.proxy},
          {"proxy_is_client_data", grid.proxy_is_client_data},
          {"records", simulated.data.limit == 0 ? ordered_json("all") : ordered_json(simulated.data.limit)},
          {"config_hash", grid.spec.hash()}};
}

void print(const ordered_json& value, size_t depth, std::string& text) {
  const auto plain = [](const ordered_json& item) { return !item.is_structured(); };
  if (plain(value) || value.empty()) {
    text += value.is_number_float() ? fmt::format("{}", value.get<double>()) : value.dump();
    return;
  }
  const bool object = value.is_object();
  const bool one_line = !object && std::all_of(value.begin(), value.end(), plain);
  const auto new_line = [&](size_t indent) {
    text += '\n';
    text.append(2 * indent, ' ');
  };
  text += object ? "{" : "[";
  bool first = true;
  for (const auto& [key, item] : value.items()) {
    if (!first) text += one_line ? ", " : ",";
    if (!one_line) new_line(depth + 1);
    if (object) text += fmt::format("{}: ", ordered_json(key).dump());
    print(item, depth + 1, text);
    first = false;
  }
  if (!one_line) new_line(depth);
  text += object ? "}" : "]";
}

std::string number(const std::optional<double>& value) {
  return value ? fmt::format("{:.4g}", *value) : "–";
}

std::string formula(const methods::ClipCurve& curve) {
  std::vector<std::string> parts;
  for (const double value : curve.coefficients) parts.push_back(fmt::format("{:.4g}", value));
  for (size_t i = 0; i < curve.knots.size(); ++i) {
    parts.push_back(fmt::format("{:.4g}: {:.4g}", curve.knots[i], curve.values[i]));
  }
  return join(parts, ", ");
}

}  // namespace

ordered_json curve_file(const FitGrid& grid, const config::RunSpec& simulated, const FitMatrix& matrix,
                        const methods::CurveFit& fit) {
  return {{"curve", rounded(ordered_json(methods::to_json(fit.chosen)), kCurveDigits)},
          {"fit", rounded(fit_json(grid, matrix, fit), kDigits)},
          {"mechanism", mechanism_json(grid, simulated)}};
}

std::string readable(const ordered_json& value) {
  std::string text;
  print(value, 0, text);
  return text + "\n";
}

std::string describe_fit(const FitGrid& grid, const FitMatrix& matrix, const methods::CurveFit& fit) {
  std::vector<std::string> headers = {"ε"};
  for (const double bound : grid.bounds) headers.push_back(fmt::format("C = {:.4g}", bound));
  const bool all_clear = std::find(matrix.clears.begin(), matrix.clears.end(), false) == matrix.clears.end();
  if (!fit.dropped.empty() || !all_clear) headers.emplace_back("");
  Table accuracies(headers);
  for (size_t i = 0; i < grid.budgets.size(); ++i) {
    std::vector<std::string> cells = {fmt::format("{:.4g}", grid.budgets[i])};
    for (size_t j = 0; j < grid.bounds.size(); ++j) {
      const std::string spread = grid.repeats > 1 ? fmt::format(" ± {:.2f}", 100 * matrix.std[i][j]) : "";
      cells.push_back(fmt::format("{:.2f}{}{}", 100 * matrix.mean[i][j], spread, j == matrix.best[i] ? " *" : ""));
    }
    if (!matrix.clears[i]) cells.push_back(fmt::format("not above chance, {:.2f}", 100 * matrix.chance));
    if (was_dropped(fit, matrix.x[i])) cells.emplace_back("dropped as an outlier");
    accuracies.add_row(cells);
  }
  Table families({"family", "coefficients or knots", "R²", "leave-one-out", ""});
  for (const methods::FamilyFit& family : fit.families) {
    families.add_row({settings::word(family.family), family.curve ? formula(*family.curve) : "",
                      number(family.r_squared), number(family.leave_one_out),
                      family.family == fit.chosen.family ? "chosen" : family.why_not});
  }
  if (fit.chosen.family == methods::CurveFamily::kConstant)
    families.add_row({"constant", formula(fit.chosen), "–", "–", "chosen"});
  return fmt::format("accuracy in %, mean over {} run{}; * is a budget's best bound\n{}\n{}", grid.repeats,
                     grid.repeats == 1 ? "" : "s", accuracies.to_string(), families.to_string());
}

}  // namespace sotto::experiments

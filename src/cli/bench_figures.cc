#include "cli/bench_figures.h"

#include "base/table.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace sotto::cli {

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void print_figures(const nlohmann::json& figures, const OutputOptions& output) {
  if (output.json) {
    print_json(figures);
    return;
  }
  Table table({"figure", "value"});
  for (const auto& [name, figure] : figures.items()) {
    table.add_row({name, figure.is_number_float() ? fmt::format("{:.4g}", figure.get<double>())
                         : figure.is_string()     ? figure.get<std::string>()
                                                  : figure.dump()});
  }
  print_text(table.to_string());
}

}  // namespace sotto::cli

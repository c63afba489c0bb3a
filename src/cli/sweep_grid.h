// The grid of a sweep: which settings are combined.
#pragma once

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace sotto::cli {

struct Cell {
  std::vector<std::string> overrides;  // key=value, as for --set
  nlohmann::json settings;             // key → value as written
};

// Each axis is KEY=V1,V2,…, or KEY=[…] with a TOML list whose items are the values. All combinations, the last axis
// varying fastest; one empty cell if there is no axis.
std::vector<Cell> expand_grid(const std::vector<std::string>& axes);

// The one cell whose settings include KEY=VALUE[,KEY=VALUE…]; none or several is a UserError.
size_t find_cell(const std::vector<Cell>& cells, const std::string& wanted);

}  // namespace sotto::cli

// The grid of a sweep: which settings are combined.
#pragma once

#include "experiments/sweep_options.h"

#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <vector>

namespace sotto::experiments {

struct Cell {
  std::string row;                     // its name; "" if the sweep has no named rows
  std::vector<std::string> overrides;  // key=value, as for --set
  nlohmann::json settings;             // key → value as written
};

// Each axis is KEY=V1,V2,…, or KEY=[…] with a TOML list whose items are the values; a table sets several keys at once. All combinations, the last axis
// varying fastest; one empty cell if there is no axis. An axis without values is a UserError.
std::vector<Cell> expand_grid(const std::vector<std::string>& axes);

// Every row in every cell of the grid, rows varying fastest; the grid's settings are applied after the row's.
std::vector<Cell> combine(const std::vector<SweepRow>& rows, const std::vector<Cell>& grid);

// Which cell each cell is compared with; nothing for those that others are compared with. `wanted` is the name of a
// row, which stands for itself at every point of the grid, or KEY=VALUE[,KEY=VALUE…] for one cell. Anything else is a
// UserError.
std::vector<std::optional<size_t>> references(const std::vector<Cell>& cells, const std::string& wanted);

}  // namespace sotto::experiments

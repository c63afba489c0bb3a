// [sweep]: the table that `sotto sweep` makes of a config.
#pragma once

#include "settings/section.h"

#include <cstdint>
#include <string>
#include <vector>

namespace sotto::experiments {

struct SweepRow {
  std::string name;
  std::vector<std::string> set;  // key=value, as for --set

  bool operator==(const SweepRow&) const = default;
};
struct SweepOptions {
  std::vector<SweepRow> rows;     // named settings; each is combined with the whole grid
  std::vector<std::string> grid;  // KEY=V1,V2,…, as for --grid
  int64_t seeds = 5;
  std::string against;  // the row that the others are tested against
  std::string metric = "accuracy.mean";
  std::vector<std::string> quick;       // what --quick sets
  std::vector<std::string> quick_grid;  // the grid of --quick; empty = grid

  bool operator==(const SweepOptions&) const = default;
};

SweepOptions read_sweep_options(settings::Section section);

}  // namespace sotto::experiments

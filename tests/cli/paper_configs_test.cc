// The configs of papers' tables: every row of every table is a run that can begin.
#include "base/error.h"
#include "config/load.h"
#include "experiments/sweep_grid.h"
#include "methods/catalogue.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <set>

namespace sotto::cli {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> configs() {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(fs::path(SOTTO_EXAMPLES) / "paper")) {
    if (entry.path().extension() == ".toml") files.push_back(entry.path());
  }
  return files;
}

config::RunSpec load(const fs::path& file, std::vector<std::string> overrides, const std::vector<std::string>& more) {
  overrides.insert(overrides.end(), more.begin(), more.end());
  return config::load_run_spec(file, overrides);
}

TEST(PaperConfigs, EveryRowOfEveryTableLoads) {
  ASSERT_GE(configs().size(), 10U);
  for (const fs::path& file : configs()) {
    SCOPED_TRACE(file.filename().string());
    const config::RunSpec spec = load(file, {}, {});
    if (!spec.sweep) continue;
    EXPECT_GE(spec.sweep->seeds, 5) << "a table has at least five seeds";
    const auto& quick_grid = spec.sweep->quick_grid.empty() ? spec.sweep->grid : spec.sweep->quick_grid;
    for (const Cell& cell : combine(spec.sweep->rows, expand_grid(spec.sweep->grid))) load(file, cell.overrides, {});
    for (const Cell& cell : combine(spec.sweep->rows, expand_grid(quick_grid))) {
      load(file, cell.overrides, spec.sweep->quick);
    }
    const auto cells = combine(spec.sweep->rows, expand_grid(spec.sweep->grid));
    EXPECT_NO_THROW(references(cells, spec.sweep->against));
  }
}

TEST(PaperConfigs, RowsOfATableDiffer) {
  for (const fs::path& file : configs()) {
    const config::RunSpec spec = load(file, {}, {});
    if (!spec.sweep) continue;
    std::set<std::string> hashes;
    const auto cells = combine(spec.sweep->rows, expand_grid(spec.sweep->grid));
    for (const Cell& cell : cells) hashes.insert(load(file, cell.overrides, {}).hash());
    EXPECT_EQ(hashes.size(), cells.size()) << file;
  }
}

}  // namespace
}  // namespace sotto::cli

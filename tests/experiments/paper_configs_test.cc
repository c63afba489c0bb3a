// The configs of papers' tables and of our own: every row of every table is a run that can begin.
#include "base/error.h"
#include "base/files.h"
#include "config/load.h"
#include "experiments/sweep_grid.h"
#include "experiments/sweep_options.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <set>

namespace sotto::experiments {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> configs() {
  std::vector<fs::path> files;
  for (const char* folder : {"paper", "frontier"}) {
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(SOTTO_EXAMPLES) / folder)) {
      if (entry.path().extension() == ".toml") files.push_back(entry.path());
    }
  }
  return files;
}

config::RunSpec load(const fs::path& file, std::vector<std::string> overrides, const std::vector<std::string>& more) {
  overrides.insert(overrides.end(), more.begin(), more.end());
  return config::load_run_spec(file, overrides);
}

std::optional<SweepOptions> sweep_of(const fs::path& file) {
  const auto table = config::load_table(file, {}, config::kSweepTable);
  return table ? std::optional(read_sweep_options(*table)) : std::nullopt;
}

TEST(PaperConfigs, EveryRowOfEveryTableLoads) {
  ASSERT_GE(configs().size(), 10U);
  for (const fs::path& file : configs()) {
    SCOPED_TRACE(file.filename().string());
    load(file, {}, {});
    const auto sweep = sweep_of(file);
    if (!sweep) continue;
    EXPECT_GE(sweep->seeds, 5) << "a table has at least five seeds";
    const auto& quick_grid = sweep->quick_grid.empty() ? sweep->grid : sweep->quick_grid;
    for (const Cell& cell : combine(sweep->rows, expand_grid(sweep->grid))) load(file, cell.overrides, {});
    for (const Cell& cell : combine(sweep->rows, expand_grid(quick_grid))) {
      load(file, cell.overrides, sweep->quick);
    }
    const auto cells = combine(sweep->rows, expand_grid(sweep->grid));
    EXPECT_NO_THROW(references(cells, sweep->against));
  }
}

// Of every config of a whole table: what was measured with it, or why nothing was; and the list of them names it.
TEST(PaperConfigs, WholeTablesSayWhetherTheyWereMeasured) {
  const std::string list = read_file(fs::path(SOTTO_EXAMPLES).parent_path() / "docs" / "results" / "index.md");
  int64_t whole = 0;
  for (const fs::path& file : configs()) {
    if (file.parent_path().filename() != "full") continue;
    ++whole;
    const std::string text = read_file(file);
    const std::string head = text.substr(0, text.find("\n\n"));
    EXPECT_TRUE(head.find("\n# Not measured") != std::string::npos || head.find("\n# Measured") != std::string::npos)
        << file;
    EXPECT_NE(list.find(fs::relative(file, fs::path(SOTTO_EXAMPLES).parent_path()).string()), std::string::npos)
        << file << " is not in docs/results/index.md; scripts/paper_list.py writes it";
  }
  EXPECT_GE(whole, 60);
}

TEST(PaperConfigs, RowsOfATableDiffer) {
  for (const fs::path& file : configs()) {
    load(file, {}, {});
    const auto sweep = sweep_of(file);
    if (!sweep) continue;
    std::set<std::string> hashes;
    const auto cells = combine(sweep->rows, expand_grid(sweep->grid));
    for (const Cell& cell : cells) hashes.insert(load(file, cell.overrides, {}).hash());
    EXPECT_EQ(hashes.size(), cells.size()) << file;
  }
}

}  // namespace
}  // namespace sotto::experiments

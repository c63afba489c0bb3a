#include "experiments/sweep_grid.h"

#include "base/error.h"
#include "base/text.h"
#include "settings/toml.h"

#include <algorithm>
#include <set>

namespace sotto::experiments {
namespace {

using nlohmann::json;

struct Axis {
  std::string key;
  std::vector<std::string> values;
};

// A value as it is written behind --set: texts bare, tables inline.
std::string as_written(const json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_object()) return value.dump();
  std::vector<std::string> entries;
  for (const auto& [key, entry] : value.items()) entries.push_back(fmt::format("{} = {}", key, entry.dump()));
  return fmt::format("{{{}}}", join(entries, ", "));
}

std::vector<std::string> list_items(const std::string& text, const std::string& axis) {
  if (!text.starts_with('[')) return split(text, ',');
  const json list = settings::parse_toml("values = " + text, "--grid " + axis).value["values"];
  std::vector<std::string> items;
  for (const json& item : list) items.push_back(as_written(item));
  return items;
}

Axis parse_axis(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    fail_user("--grid {}: write it as KEY=V1,V2, for example --grid federation.lr=0.01,0.1", text);
  }
  Axis axis{trim(text.substr(0, equals)), list_items(trim(text.substr(equals + 1)), text)};
  if (axis.key == "seed") fail_user("--grid {}: seeds are the unit of comparison; use --seeds", text);
  if (axis.values.empty()) fail_user("--grid {}: the list is empty; write at least one value", text);
  if (std::any_of(axis.values.begin(), axis.values.end(), [](const auto& value) { return value.empty(); })) {
    fail_user("--grid {}: an empty value", text);
  }
  const std::set<std::string> different(axis.values.begin(), axis.values.end());
  if (different.size() < axis.values.size()) fail_user("--grid {}: a value is there twice", text);
  return axis;
}

// The one cell whose settings include all of these.
size_t find_cell(const std::vector<Cell>& cells, const std::string& wanted) {
  std::vector<size_t> matching;
  const std::vector<std::string> parts = split(wanted, ',');
  for (size_t i = 0; i < cells.size(); ++i) {
    const auto& overrides = cells[i].overrides;
    const bool matches = std::all_of(parts.begin(), parts.end(), [&](const std::string& part) {
      return std::find(overrides.begin(), overrides.end(), trim(part)) != overrides.end();
    });
    if (matches) matching.push_back(i);
  }
  if (matching.size() != 1) {
    fail_user("--against {} names {} settings of the grid; it must name exactly one, or a row", wanted,
              matching.size());
  }
  return matching.front();
}

}  // namespace

std::vector<Cell> expand_grid(const std::vector<std::string>& axes) {
  std::vector<Cell> cells = {{.row = {}, .overrides = {}, .settings = json::object()}};
  std::set<std::string> keys;
  for (const std::string& text : axes) {
    const Axis axis = parse_axis(text);
    if (!keys.insert(axis.key).second)
      fail_user("--grid {}: {} has values already; write them all at once", text, axis.key);
    std::vector<Cell> expanded;
    for (const Cell& cell : cells) {
      for (const std::string& value : axis.values) {
        Cell next = cell;
        next.overrides.push_back(axis.key + "=" + value);
        next.settings[axis.key] = value;
        expanded.push_back(std::move(next));
      }
    }
    cells = std::move(expanded);
  }
  return cells;
}

std::vector<Cell> combine(const std::vector<SweepRow>& rows, const std::vector<Cell>& grid) {
  if (rows.empty()) return grid;
  std::vector<Cell> cells;
  for (const Cell& point : grid) {
    for (const SweepRow& row : rows) {
      Cell cell = point;
      cell.row = row.name;
      cell.overrides.insert(cell.overrides.begin(), row.set.begin(), row.set.end());
      cells.push_back(std::move(cell));
    }
  }
  return cells;
}

std::vector<std::optional<size_t>> references(const std::vector<Cell>& cells, const std::string& wanted) {
  std::vector<std::optional<size_t>> result(cells.size());
  if (wanted.empty()) return result;
  const bool is_row = std::any_of(cells.begin(), cells.end(), [&](const Cell& cell) { return cell.row == wanted; });
  for (size_t i = 0; i < cells.size(); ++i) {
    for (size_t j = 0; is_row && j < cells.size(); ++j) {
      if (cells[j].row == wanted && cells[j].settings == cells[i].settings && i != j) result[i] = j;
    }
  }
  if (is_row) return result;
  const size_t one = find_cell(cells, wanted);
  for (size_t i = 0; i < cells.size(); ++i) {
    if (i != one) result[i] = one;
  }
  return result;
}

}  // namespace sotto::experiments

// Tables of reference values: one map from column name to text per row.
#pragma once

#include <fstream>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace sotto::privacy {

struct ReferenceRow {
  std::map<std::string, std::string> cells;

  const std::string& text(const std::string& column) const { return cells.at(column); }
  double number(const std::string& column) const { return std::stod(cells.at(column)); }
};

inline std::vector<std::string> split_csv_line(const std::string& line) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      cells.emplace_back();
    } else if (c != '\r') {
      cells.back() += c;
    }
  }
  return cells;
}

inline std::vector<ReferenceRow> reference_rows(const std::string& file) {
  std::ifstream in(SOTTO_ACCOUNTING_VECTORS "/" + file);
  if (!in) throw std::runtime_error("no reference values " + file);
  std::string line;
  std::getline(in, line);
  const std::vector<std::string> columns = split_csv_line(line);
  std::vector<ReferenceRow> rows;
  while (std::getline(in, line)) {
    const std::vector<std::string> cells = split_csv_line(line);
    ReferenceRow row;
    for (size_t i = 0; i < columns.size(); ++i) row.cells[columns[i]] = i < cells.size() ? cells[i] : "";
    rows.push_back(row);
  }
  return rows;
}

}  // namespace sotto::privacy

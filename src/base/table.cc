#include "base/table.h"

#include "base/text.h"

#include <algorithm>
#include <cctype>

namespace sotto {
namespace {

bool looks_numeric(const std::string& cell) {
  return cell.empty() || cell == "∞" || cell == "–" || std::isdigit(static_cast<unsigned char>(cell.front())) != 0 ||
         ((cell.front() == '-' || cell.front() == '+' || cell.front() == '.' || cell.front() == '<') &&
          cell.size() > 1 && (std::isdigit(static_cast<unsigned char>(cell[1])) != 0 || cell[1] == ' '));
}

std::string padded(const std::string& cell, size_t width, bool right) {
  const std::string space(width - display_width(cell), ' ');
  return right ? space + cell : cell + space;
}

}  // namespace

Table::Table(std::vector<std::string> headers) : headers_(std::move(headers)) {}

void Table::add_row(std::vector<std::string> cells) {
  cells.resize(headers_.size());
  rows_.push_back(std::move(cells));
}

bool Table::is_numeric(size_t column) const {
  const auto fits = [&](const std::vector<std::string>& row) { return looks_numeric(row[column]); };
  return !rows_.empty() && std::all_of(rows_.begin(), rows_.end(), fits);
}

std::string Table::to_string() const {
  const size_t columns = headers_.size();
  std::vector<size_t> width(columns);
  std::vector<bool> right(columns);
  for (size_t c = 0; c < columns; ++c) {
    width[c] = display_width(headers_[c]);
    right[c] = is_numeric(c);
    for (const auto& row : rows_) width[c] = std::max(width[c], display_width(row[c]));
  }
  const auto line = [&](const std::vector<std::string>& cells) {
    std::string text;
    for (size_t c = 0; c < columns; ++c) text += (c == 0 ? "" : "  ") + padded(cells[c], width[c], right[c]);
    text.erase(text.find_last_not_of(' ') + 1);
    return text + "\n";
  };
  std::string text = line(headers_);
  for (size_t c = 0; c < columns; ++c) {
    text += c == 0 ? "" : "  ";
    for (size_t i = 0; i < width[c]; ++i) text += "─";
  }
  text += "\n";
  for (const auto& row : rows_) text += line(row);
  return text;
}

}  // namespace sotto

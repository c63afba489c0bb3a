#include "base/table.h"

#include "base/text.h"

#include <algorithm>
#include <cctype>
#include <numeric>

namespace sotto {
namespace {

bool looks_numeric(const std::string& cell) {
  return cell.empty() || cell == "∞" || cell == "–" || std::isdigit(static_cast<unsigned char>(cell.front())) != 0 ||
         ((cell.front() == '-' || cell.front() == '+' || cell.front() == '.' || cell.front() == '<') &&
          cell.size() > 1 && (std::isdigit(static_cast<unsigned char>(cell[1])) != 0 || cell[1] == ' '));
}

const std::string kBetween = "  ";

size_t longest_word(const std::string& text) {
  size_t longest = 0;
  for (const std::string& word : split(text, ' ')) longest = std::max(longest, display_width(word));
  return longest;
}

// The text in lines of at most `width` characters, as far as its words allow.
std::vector<std::string> broken(const std::string& text, size_t width) {
  if (display_width(text) <= width) return {text};
  std::vector<std::string> lines = {""};
  for (const std::string& word : split(text, ' ')) {
    std::string& last = lines.back();
    if (!last.empty() && display_width(last) + 1 + display_width(word) > width) {
      lines.push_back(word);
    } else {
      last += (last.empty() ? "" : " ") + word;
    }
  }
  return lines;
}

// Takes from the widest column that can give until all fit into `most` characters, or none can.
void shrink(std::vector<size_t>& width, const std::vector<size_t>& least, size_t most) {
  const auto total = [&] {
    return std::accumulate(width.begin(), width.end(), size_t{0}) + kBetween.size() * (width.size() - 1);
  };
  while (!width.empty() && total() > most) {
    size_t widest = width.size();
    for (size_t c = 0; c < width.size(); ++c) {
      if (width[c] > least[c] && (widest == width.size() || width[c] > width[widest])) widest = c;
    }
    if (widest == width.size()) return;
    --width[widest];
  }
}

std::string padded(const std::string& cell, size_t width, bool right) {
  const std::string space(width - std::min(width, display_width(cell)), ' ');
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

std::string Table::to_string(size_t most) const {
  const size_t columns = headers_.size();
  std::vector<size_t> width(columns), least(columns);
  std::vector<bool> right(columns);
  for (size_t c = 0; c < columns; ++c) {
    right[c] = is_numeric(c);
    const auto fit = [&](const std::string& cell) {
      width[c] = std::max(width[c], display_width(cell));
      least[c] = std::max(least[c], longest_word(cell));
    };
    fit(headers_[c]);
    for (const auto& row : rows_) fit(row[c]);
  }
  if (most > 0) shrink(width, least, most);

  const auto line = [&](const std::vector<std::string>& cells) {
    std::vector<std::vector<std::string>> parts;
    size_t lines = 1;
    for (size_t c = 0; c < columns; ++c) {
      parts.push_back(broken(cells[c], width[c]));
      lines = std::max(lines, parts.back().size());
    }
    std::string text;
    for (size_t i = 0; i < lines; ++i) {
      std::string one;
      for (size_t c = 0; c < columns; ++c) {
        one += (c == 0 ? "" : kBetween) + padded(i < parts[c].size() ? parts[c][i] : "", width[c], right[c]);
      }
      one.erase(one.find_last_not_of(' ') + 1);
      text += one + "\n";
    }
    return text;
  };
  std::string text = line(headers_);
  for (size_t c = 0; c < columns; ++c) {
    text += c == 0 ? "" : kBetween;
    for (size_t i = 0; i < width[c]; ++i) text += "─";
  }
  text += "\n";
  for (const auto& row : rows_) text += line(row);
  return text;
}

}  // namespace sotto

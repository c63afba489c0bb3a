// Tables that line up in a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace sotto {

class Table {
 public:
  explicit Table(std::vector<std::string> headers);

  // Missing cells are blank. Cells that look like numbers are aligned right, and so is their header.
  void add_row(std::vector<std::string> cells);

  // Ends with a newline. Widths count characters, not bytes. Cells and headers are spread over lines, between words, so
  // that no line is wider than `width`, if that can be; 0: as wide as it comes.
  std::string to_string(size_t width = 0) const;

  // For documents and papers: GitHub's Markdown, a LaTeX tabular, CSV as RFC 4180 has it.
  std::string to_markdown() const;
  std::string to_latex() const;
  std::string to_csv() const;

 private:
  // Whether every cell of the column looks like a number; a column without rows does not.
  bool is_numeric(size_t column) const;

  std::vector<std::string> headers_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace sotto

// Tables that line up in a terminal.
#pragma once

#include <string>
#include <vector>

namespace sotto {

class Table {
 public:
  explicit Table(std::vector<std::string> headers);

  // Missing cells are blank. Cells that look like numbers are aligned right, and so is their header.
  void add_row(std::vector<std::string> cells);

  // Ends with a newline. Widths count characters, not bytes.
  std::string to_string() const;

 private:
  std::vector<std::string> headers_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace sotto

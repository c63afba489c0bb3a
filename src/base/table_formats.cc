// Tables as other programs read them.
#include "base/table.h"
#include "base/text.h"

#include <fmt/format.h>

namespace sotto {
namespace {

std::string escaped(const std::string& cell, std::string_view special, std::string_view prefix) {
  std::string text;
  for (const char c : cell) {
    if (special.find(c) != special.npos) text += prefix;
    text += c;
  }
  return text;
}

std::string latex(const std::string& cell) {
  std::string text;
  for (const char c : escaped(cell, "&%$#_{}", "\\"))
    text += c == '~' ? std::string("\\textasciitilde{}") : std::string(1, c);
  const auto replace = [&](std::string_view symbol, std::string_view command) {
    for (size_t at = text.find(symbol); at != text.npos; at = text.find(symbol, at + command.size())) {
      text.replace(at, symbol.size(), command);
    }
  };
  replace("ε", "$\\varepsilon$");
  replace("δ", "$\\delta$");
  replace("∞", "$\\infty$");
  replace("±", "$\\pm$");
  replace("–", "--");
  return text;
}

std::string csv(const std::string& cell) {
  if (cell.find_first_of(",\"\r\n") == cell.npos) return cell;
  return fmt::format("\"{}\"", escaped(cell, "\"", "\""));
}

template <typename F>
std::vector<std::string> each(const std::vector<std::string>& cells, const F& convert) {
  std::vector<std::string> converted;
  converted.reserve(cells.size());
  for (const std::string& cell : cells) converted.push_back(convert(cell));
  return converted;
}

}  // namespace

std::string Table::to_markdown() const {
  const auto line = [](const std::vector<std::string>& cells) {
    return fmt::format("| {} |\n",
                       join(each(cells, [](const std::string& c) { return escaped(c, "|", "\\"); }), " | "));
  };
  std::string text = line(headers_) + "|";
  for (size_t c = 0; c < headers_.size(); ++c) text += is_numeric(c) ? "---:|" : "---|";
  text += "\n";
  for (const auto& row : rows_) text += line(row);
  return text;
}

std::string Table::to_latex() const {
  const auto line = [](const std::vector<std::string>& cells) { return join(each(cells, latex), " & ") + " \\\\\n"; };
  std::string columns;
  for (size_t c = 0; c < headers_.size(); ++c) columns += is_numeric(c) ? 'r' : 'l';
  std::string text = fmt::format("\\begin{{tabular}}{{{}}}\n\\hline\n{}\\hline\n", columns, line(headers_));
  for (const auto& row : rows_) text += line(row);
  return text + "\\hline\n\\end{tabular}\n";
}

std::string Table::to_csv() const {
  const auto line = [](const std::vector<std::string>& cells) { return join(each(cells, csv), ",") + "\n"; };
  std::string text = line(headers_);
  for (const auto& row : rows_) text += line(row);
  return text;
}

}  // namespace sotto

#include "io/csv.h"

#include "base/error.h"
#include "base/text.h"

#include <csv.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace sotto::io {
namespace {

struct Collector {
  std::vector<CsvRow> rows;
  CsvRow row;
};

void on_field(void* bytes, size_t size, void* collector) {
  static_cast<Collector*>(collector)->row.emplace_back(static_cast<const char*>(bytes), size);
}

void on_row(int, void* collector) {
  auto* const self = static_cast<Collector*>(collector);
  self->rows.push_back(std::move(self->row));
  self->row.clear();
}

class Parser {
 public:
  Parser() { SOTTO_INVARIANT(csv_init(&parser, CSV_STRICT | CSV_STRICT_FINI) == 0); }
  ~Parser() { csv_free(&parser); }
  Parser(const Parser&) = delete;
  Parser& operator=(const Parser&) = delete;

  csv_parser parser{};
};

void check_lengths(const std::vector<CsvRow>& rows, const std::string& where) {
  for (size_t i = 1; i < rows.size(); ++i) {
    if (rows[i].size() != rows[0].size()) {
      fail_user("{}, row {}: {} cells where the first row has {}", where, i + 1, rows[i].size(), rows[0].size());
    }
  }
}

}  // namespace

std::vector<CsvRow> parse_csv(std::string_view text, const std::string& where) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  if (const size_t nul = text.find('\0'); nul != text.npos) {
    const auto row = std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(nul), '\n') + 1;
    fail_user("{}, line {}: a NUL character; the file is damaged or not a text file", where, row);
  }
  Parser parser;
  Collector collector;
  const bool parsed =
      csv_parse(&parser.parser, text.data(), text.size(), on_field, on_row, &collector) == text.size() &&
      csv_fini(&parser.parser, on_field, on_row, &collector) == 0;
  if (!parsed) {
    fail_user("{}, row {}: a quote is misplaced or never closed", where, collector.rows.size() + 1);
  }
  if (collector.rows.empty()) fail_user("{} is empty", where);
  check_lengths(collector.rows, where);
  return std::move(collector.rows);
}

bool is_missing(std::string_view cell) {
  const std::string lower = to_lower_ascii(cell);
  return lower.empty() || lower == "?" || lower == "na" || lower == "n/a" || lower == "nan" || lower == "null";
}

bool is_infinite(std::string_view cell) {
  if (cell.starts_with('+')) cell.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (end != cell.data() + cell.size() || cell.empty()) return false;
  return error == std::errc::result_out_of_range || (error == std::errc() && std::isinf(value));
}

bool parse_number(std::string_view cell, double& value) {
  if (cell.starts_with('+')) cell.remove_prefix(1);
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  return error == std::errc() && end == cell.data() + cell.size() && std::isfinite(value);
}

}  // namespace sotto::io

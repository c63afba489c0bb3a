#include "data/readers/table_schema.h"

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "settings/section.h"
#include "settings/toml.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

namespace sotto::data {
namespace {

constexpr size_t kMaxInferredValues = 1000;
constexpr double kNotStated = std::numeric_limits<double>::quiet_NaN();

const std::vector<std::pair<std::string, ColumnKind>> kKinds{{"number", ColumnKind::kNumber},
                                                             {"category", ColumnKind::kCategory},
                                                             {"label", ColumnKind::kLabel},
                                                             {"domain", ColumnKind::kDomain},
                                                             {"ignored", ColumnKind::kIgnored}};

std::vector<std::string> kind_words() {
  std::vector<std::string> words;
  words.reserve(kKinds.size());
  for (const auto& [word, kind] : kKinds) words.push_back(word);
  return words;
}

ColumnKind kind_from(const std::string& word) {
  return std::find_if(kKinds.begin(), kKinds.end(), [&](const auto& entry) { return entry.first == word; })->second;
}

const std::string& word_of(ColumnKind kind) {
  return std::find_if(kKinds.begin(), kKinds.end(), [&](const auto& entry) { return entry.second == kind; })->first;
}

int64_t count_kind(const TableSchema& schema, ColumnKind kind) {
  return std::count_if(schema.columns.begin(), schema.columns.end(), [&](const Column& c) { return c.kind == kind; });
}

bool needs_values(ColumnKind kind) {
  return kind == ColumnKind::kCategory || kind == ColumnKind::kLabel || kind == ColumnKind::kDomain;
}

void parse_number(settings::Section& section, Column& column) {
  const std::vector<double> range = section.numbers("range", {});
  if (!range.empty() && range.size() != 2) {
    section.fail("range", fmt::format("of column '{}' must be [low, high]", column.name));
  }
  column.low = range.empty() ? kNotStated : range[0];
  column.high = range.empty() ? kNotStated : range[1];
  column.zero_is_missing = section.boolean("zero_is_missing", false);
  if (section.has("fill")) column.fill = section.number("fill", 0);
}

Column parse_column(settings::Section section) {
  Column column;
  column.name = section.text("name", "");
  if (column.name.empty()) section.fail("name", "is missing: a column is found by its name");
  column.kind = kind_from(section.required_one_of("kind", kind_words()));
  if (needs_values(column.kind)) column.values = section.texts("values", {});
  if (column.kind == ColumnKind::kNumber) parse_number(section, column);
  if (column.kind == ColumnKind::kCategory) column.fill_value = section.text("fill", "");
  if (column.kind == ColumnKind::kNumber || column.kind == ColumnKind::kCategory) {
    column.may_be_missing = section.boolean("missing", false);
  }
  section.finish();
  return column;
}

void check_fill(const Column& column, const std::string& where) {
  if (!column.fill && column.fill_value.empty()) return;
  if (!column.may_be_missing) {
    fail_user("{}: column '{}' has a fill but may not be missing; add missing = true, or leave fill out", where,
              column.name);
  }
  if (column.fill && (*column.fill < column.low || *column.fill > column.high)) {
    fail_user("{}: the fill of column '{}' is {}, outside its range [{}, {}]", where, column.name, *column.fill,
              column.low, column.high);
  }
  const bool known = std::find(column.values.begin(), column.values.end(), column.fill_value) != column.values.end();
  if (!column.fill && !known) {
    fail_user("{}: the fill of column '{}' is '{}', which is none of its values", where, column.name,
              column.fill_value);
  }
}

void check_column(const Column& column, const std::string& where) {
  if (column.kind == ColumnKind::kNumber && !column.has_range()) {
    fail_user("{}: the range of '{}' is not stated; write range = [low, high]", where, column.name);
  }
  const bool bad_range = !std::isfinite(column.low) || !std::isfinite(column.high) || column.low >= column.high;
  if (column.kind == ColumnKind::kNumber && bad_range) {
    fail_user("{}: the range of '{}' is empty: [{}, {}]", where, column.name, column.low, column.high);
  }
  if (needs_values(column.kind) && column.values.empty()) {
    fail_user("{}: column '{}' has no values; write values = [\"…\", \"…\"]", where, column.name);
  }
  const std::set<std::string> distinct(column.values.begin(), column.values.end());
  if (distinct.size() != column.values.size()) fail_user("{}: column '{}' names a value twice", where, column.name);
  check_fill(column, where);
}

struct Summary {
  bool is_number = true;
  bool has_missing = false;
  std::optional<size_t> infinite;  // a row where everything else in the column is a number
  double mean = 0.0;
  double stddev = 0.0;
  std::set<std::string> values;
};

Summary summarise(const std::vector<io::CsvRow>& rows, size_t column) {
  Summary summary;
  std::vector<double> numbers;
  bool has_words = false;
  for (size_t row = 0; row < rows.size(); ++row) {
    const std::string& cell = rows[row][column];
    if (io::is_missing(cell)) {
      summary.has_missing = true;
      continue;
    }
    double number = 0;
    if (io::parse_number(cell, number)) {
      numbers.push_back(number);
    } else if (io::is_infinite(cell)) {
      summary.infinite = row;
    } else {
      has_words = true;
    }
    summary.values.insert(cell);
  }
  if (has_words || numbers.empty()) summary.infinite.reset();
  summary.is_number = !has_words;
  if (numbers.empty()) return summary;
  const auto count = static_cast<double>(numbers.size());
  for (const double number : numbers) summary.mean += number / count;
  for (const double number : numbers) summary.stddev += (number - summary.mean) * (number - summary.mean) / count;
  summary.stddev = std::sqrt(summary.stddev);
  return summary;
}

// Numbers by value, everything else by spelling.
std::vector<std::string> ordered(const Summary& summary) {
  std::vector<std::string> values(summary.values.begin(), summary.values.end());
  if (!summary.is_number) return values;
  std::map<double, std::string> by_value;
  for (const std::string& value : values) {
    double number = 0;
    io::parse_number(value, number);
    by_value.emplace(number, value);
  }
  values.clear();
  for (const auto& entry : by_value) values.push_back(entry.second);
  return values;
}

Column infer_column(const std::string& name, ColumnKind kind, const std::vector<io::CsvRow>& rows, size_t index,
                    const std::string& where, int64_t first_row) {
  const Summary summary = summarise(rows, index);
  if (summary.infinite) {
    fail_user("{}, row {}: '{}' in column '{}' is not a finite number; correct it, or leave the cell empty", where,
              first_row + static_cast<int64_t>(*summary.infinite), rows[*summary.infinite][index], name);
  }
  Column column;
  column.name = name;
  column.kind = kind == ColumnKind::kNumber && !summary.is_number ? ColumnKind::kCategory : kind;
  column.may_be_missing = summary.has_missing;
  if (needs_values(column.kind)) {
    if (summary.values.size() > kMaxInferredValues) {
      fail_user(
          "{}: column '{}' has {} different values; if it is an identifier or a measurement, say so in a schema file",
          where, name, summary.values.size());
    }
    column.values = ordered(summary);
  } else {
    const double spread = summary.stddev > 0 ? summary.stddev : 1.0;
    column.low = summary.mean - spread;
    column.high = summary.mean + spread;
  }
  return column;
}

}  // namespace

size_t label_column(const io::CsvRow& names) {
  for (const char* wanted : {"label", "target", "class"}) {
    for (size_t c = 0; c < names.size(); ++c) {
      if (to_lower_ascii(names[c]) == wanted) return c;
    }
  }
  const size_t last = names.size() - 1;
  return is_domain_name(names[last]) && last > 0 ? last - 1 : last;
}

bool is_domain_name(const std::string& name) {
  return to_lower_ascii(name) == "domain";
}

void check_schema(const TableSchema& schema, const std::string& where) {
  if (count_kind(schema, ColumnKind::kLabel) != 1) fail_user("{}: exactly one column must be the label", where);
  if (count_kind(schema, ColumnKind::kDomain) > 1) fail_user("{}: more than one column is the domain", where);
  if (count_kind(schema, ColumnKind::kNumber) + count_kind(schema, ColumnKind::kCategory) == 0) {
    fail_user("{}: no column is a number or a category, so there is nothing to learn from", where);
  }
  std::set<std::string> names;
  for (const Column& column : schema.columns) {
    if (!names.insert(column.name).second) fail_user("{}: two columns are called '{}'", where, column.name);
    check_column(column, where);
  }
}

TableSchema schema_from(const nlohmann::json& value, const std::string& where) {
  if (!value.is_object()) fail_user("{} is not a table schema: it has no columns", where);
  settings::Section root(value, "", std::make_shared<settings::Source>(settings::Source{.file = where, .line = {}}));
  TableSchema schema;
  for (settings::Section& column : root.children("columns")) schema.columns.push_back(parse_column(std::move(column)));
  root.finish();
  return schema;
}

nlohmann::json to_json(const TableSchema& schema) {
  nlohmann::json columns = nlohmann::json::array();
  for (const Column& column : schema.columns) {
    nlohmann::json value = {{"name", column.name}, {"kind", word_of(column.kind)}};
    if (column.kind == ColumnKind::kNumber) {
      value["range"] = column.has_range() ? nlohmann::json{column.low, column.high} : nlohmann::json::array();
    }
    if (needs_values(column.kind)) value["values"] = column.values;
    if (column.may_be_missing) value["missing"] = true;
    if (column.zero_is_missing) value["zero_is_missing"] = true;
    if (column.fill) value["fill"] = *column.fill;
    if (!column.fill_value.empty()) value["fill"] = column.fill_value;
    columns.push_back(std::move(value));
  }
  return {{"columns", columns}};
}

TableSchema read_unfinished_schema(const fs::path& path) {
  const std::string text = read_file(path);
  if (path.extension() != ".json") return schema_from(settings::parse_toml(text, path.string()).value, path.string());
  try {
    return schema_from(nlohmann::json::parse(text), path.string());
  } catch (const nlohmann::json::exception& error) {
    fail_user("{} is not a table schema: {}", path.string(), error.what());
  }
}

TableSchema read_schema(const fs::path& path) {
  TableSchema schema = read_unfinished_schema(path);
  check_schema(schema, path.string());
  return schema;
}

TableSchema infer_schema(const io::CsvRow& names, const std::vector<io::CsvRow>& rows, const std::string& where,
                         int64_t first_row) {
  TableSchema schema;
  schema.is_inferred = true;
  const size_t label = label_column(names);
  for (size_t c = 0; c < names.size(); ++c) {
    const bool is_domain = c != label && is_domain_name(names[c]);
    const ColumnKind kind = c == label ? ColumnKind::kLabel : is_domain ? ColumnKind::kDomain : ColumnKind::kNumber;
    schema.columns.push_back(infer_column(names[c], kind, rows, c, where, first_row));
  }
  check_schema(schema, where);
  return schema;
}

}  // namespace sotto::data

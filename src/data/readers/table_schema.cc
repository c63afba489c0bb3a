#include "data/readers/table_schema.h"

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace sotto::data {
namespace {

constexpr size_t kMaxInferredValues = 1000;

const std::map<std::string, ColumnKind> kKinds{{"number", ColumnKind::kNumber},
                                               {"category", ColumnKind::kCategory},
                                               {"label", ColumnKind::kLabel},
                                               {"domain", ColumnKind::kDomain},
                                               {"ignored", ColumnKind::kIgnored}};

int64_t count_kind(const TableSchema& schema, ColumnKind kind) {
  return std::count_if(schema.columns.begin(), schema.columns.end(), [&](const Column& c) { return c.kind == kind; });
}

bool needs_values(ColumnKind kind) {
  return kind == ColumnKind::kCategory || kind == ColumnKind::kLabel || kind == ColumnKind::kDomain;
}

Column parse_column(const nlohmann::json& json, const std::string& where) {
  Column column;
  column.name = json.at("name").get<std::string>();
  const auto kind = json.at("kind").get<std::string>();
  if (!kKinds.contains(kind)) {
    fail_user("{}: column '{}' has the unknown kind '{}' (number, category, label, domain, ignored)", where,
              column.name, kind);
  }
  column.kind = kKinds.at(kind);
  if (column.kind == ColumnKind::kNumber) {
    const auto range = json.at("range").get<std::vector<double>>();
    if (range.size() != 2) fail_user("{}: the range of '{}' must be [low, high]", where, column.name);
    column.low = range[0];
    column.high = range[1];
  }
  if (needs_values(column.kind)) column.values = json.at("values").get<std::vector<std::string>>();
  column.may_be_missing = json.value("missing", false);
  column.zero_is_missing = json.value("zero_is_missing", false);
  return column;
}

// The index of the label column: by name, else the last that is not the domain.
size_t label_column(const io::CsvRow& names) {
  for (const char* wanted : {"label", "target", "class"}) {
    for (size_t c = 0; c < names.size(); ++c) {
      if (to_lower_ascii(names[c]) == wanted) return c;
    }
  }
  const size_t last = names.size() - 1;
  return to_lower_ascii(names[last]) == "domain" && last > 0 ? last - 1 : last;
}

struct Summary {
  bool is_number = true;
  bool has_missing = false;
  double mean = 0.0;
  double stddev = 0.0;
  std::set<std::string> values;
};

Summary summarise(const std::vector<io::CsvRow>& rows, size_t column) {
  Summary summary;
  std::vector<double> numbers;
  for (const io::CsvRow& row : rows) {
    if (io::is_missing(row[column])) {
      summary.has_missing = true;
      continue;
    }
    double number = 0;
    if (io::parse_number(row[column], number)) {
      numbers.push_back(number);
    } else {
      summary.is_number = false;
    }
    summary.values.insert(row[column]);
  }
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
                    const std::string& where) {
  const Summary summary = summarise(rows, index);
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

void check_schema(const TableSchema& schema, const std::string& where) {
  if (count_kind(schema, ColumnKind::kLabel) != 1) fail_user("{}: exactly one column must be the label", where);
  if (count_kind(schema, ColumnKind::kDomain) > 1) fail_user("{}: more than one column is the domain", where);
  if (count_kind(schema, ColumnKind::kNumber) + count_kind(schema, ColumnKind::kCategory) == 0) {
    fail_user("{}: no column is a number or a category, so there is nothing to learn from", where);
  }
  for (const Column& column : schema.columns) {
    const bool bad_range = !std::isfinite(column.low) || !std::isfinite(column.high) || column.low >= column.high;
    if (column.kind == ColumnKind::kNumber && bad_range) {
      fail_user("{}: the range of '{}' is empty: [{}, {}]", where, column.name, column.low, column.high);
    }
    if (needs_values(column.kind) && column.values.empty())
      fail_user("{}: column '{}' has no values", where, column.name);
  }
}

TableSchema read_schema(const std::filesystem::path& path) {
  try {
    const auto json = nlohmann::json::parse(read_file(path));
    TableSchema schema;
    for (const auto& column : json.at("columns")) schema.columns.push_back(parse_column(column, path.string()));
    check_schema(schema, path.string());
    return schema;
  } catch (const nlohmann::json::exception& error) {
    fail_user("{} is not a table schema: {}", path.string(), error.what());
  }
}

TableSchema infer_schema(const io::CsvRow& names, const std::vector<io::CsvRow>& rows, const std::string& where) {
  TableSchema schema;
  schema.is_inferred = true;
  const size_t label = label_column(names);
  for (size_t c = 0; c < names.size(); ++c) {
    const bool is_domain = c != label && to_lower_ascii(names[c]) == "domain";
    const ColumnKind kind = c == label ? ColumnKind::kLabel : is_domain ? ColumnKind::kDomain : ColumnKind::kNumber;
    schema.columns.push_back(infer_column(names[c], kind, rows, c, where));
  }
  check_schema(schema, where);
  return schema;
}

}  // namespace sotto::data

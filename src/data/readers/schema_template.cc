#include "data/readers/schema_template.h"

#include "base/error.h"
#include "base/text.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <limits>
#include <utility>

namespace sotto::data {
namespace {

class Statements {
 public:
  Statements(const io::CsvRow& names, const TableSchema& prior, const std::string& where)
      : names_(names), where_(where) {
    for (const Column& column : prior.columns) require_known(column.name);
    const bool has_label = std::any_of(prior.columns.begin(), prior.columns.end(),
                                       [](const Column& column) { return column.kind == ColumnKind::kLabel; });
    for (size_t c = 0; c < names.size(); ++c) {
      const auto known = std::find_if(prior.columns.begin(), prior.columns.end(),
                                      [&](const Column& column) { return column.name == names[c]; });
      schema.columns.push_back(known != prior.columns.end() ? *known : guess(c, !has_label));
    }
  }

  void set_range(const std::string& statement) {
    auto [column, text] = parse(statement, "--range", "age=0:120");
    const auto ends = split(text, ':');
    double low = 0;
    double high = 0;
    if (ends.size() != 2 || !io::parse_number(trim(ends[0]), low) || !io::parse_number(trim(ends[1]), high)) {
      fail_user("--range {}: write it as NAME=LOW:HIGH, for example age=0:120", statement);
    }
    if (low >= high) fail_user("--range {}: the range is empty", statement);
    if (column->kind != ColumnKind::kNumber) fail_user("--range {}: the column is no number", statement);
    column->low = low;
    column->high = high;
  }

  void set_values(const std::string& statement) {
    auto [column, text] = parse(statement, "--values", "stage=I,II,III");
    if (column->kind == ColumnKind::kNumber && column->has_range()) {
      fail_user("--values {}: the column is a number with a range; it cannot be both", statement);
    }
    if (column->kind == ColumnKind::kNumber || column->kind == ColumnKind::kIgnored) {
      *column = {.name = column->name, .kind = ColumnKind::kCategory, .may_be_missing = column->may_be_missing};
    }
    column->values = split(text, ',');
    for (std::string& value : column->values) value = trim(value);
  }

  void ignore(const std::string& name) {
    require_known(name);
    *find(name) = {.name = name, .kind = ColumnKind::kIgnored};
  }

  TableSchema schema;

 private:
  Column guess(size_t index, bool may_be_label) const {
    Column column{.name = names_[index]};
    if (may_be_label && index == label_column(names_)) {
      column.kind = ColumnKind::kLabel;
    } else if (is_domain_name(names_[index])) {
      column.kind = ColumnKind::kDomain;
    } else {
      column.low = column.high = std::numeric_limits<double>::quiet_NaN();
    }
    return column;
  }

  void require_known(const std::string& name) const {
    if (std::find(names_.begin(), names_.end(), name) != names_.end()) return;
    fail_user("{} has no column '{}'{}; it has: {}", where_, name, did_you_mean(name, names_), join(names_, ", "));
  }

  Column* find(const std::string& name) {
    return &*std::find_if(schema.columns.begin(), schema.columns.end(),
                          [&](const Column& column) { return column.name == name; });
  }

  // The column a statement is about, and what it says.
  std::pair<Column*, std::string> parse(const std::string& statement, const char* flag, const char* example) {
    const size_t equals = statement.find('=');
    if (equals == std::string::npos || equals + 1 == statement.size()) {
      fail_user("{} {}: write it as NAME=…, for example {}", flag, statement, example);
    }
    const std::string name = trim(statement.substr(0, equals));
    require_known(name);
    return {find(name), statement.substr(equals + 1)};
  }

  const io::CsvRow& names_;
  const std::string& where_;
};

// TOML and JSON write texts alike.
std::string toml_text(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string list_of(const std::vector<std::string>& values) {
  std::vector<std::string> texts;
  texts.reserve(values.size());
  for (const std::string& value : values) texts.push_back(toml_text(value));
  return fmt::format("[{}]", join(texts, ", "));
}

std::string column_text(const Column& column, const nlohmann::json& value) {
  std::string text = fmt::format("\n[[columns]]\nname = {}\nkind = {}\n", toml_text(column.name),
                                 toml_text(value.at("kind").get<std::string>()));
  if (value.contains("range")) {
    text += column.has_range() ? fmt::format("range = [{}, {}]\n", column.low, column.high)
                               : "range = []  # to be stated: [low, high]; or another kind\n";
  }
  if (value.contains("values")) {
    text += column.values.empty() ? "values = []  # to be stated: every value it may have\n"
                                  : fmt::format("values = {}\n", list_of(column.values));
  }
  if (column.may_be_missing) text += "missing = true\n";
  if (column.zero_is_missing) text += "zero_is_missing = true\n";
  if (column.fill) text += fmt::format("fill = {}\n", *column.fill);
  if (!column.fill_value.empty()) text += fmt::format("fill = {}\n", toml_text(column.fill_value));
  return text;
}

}  // namespace

TableSchema stated_schema(const io::CsvRow& names, const StatedColumns& stated, const std::string& where) {
  Statements statements(names, stated.prior, where);
  for (const std::string& name : stated.ignored) statements.ignore(name);
  for (const std::string& statement : stated.ranges) statements.set_range(statement);
  for (const std::string& statement : stated.values) statements.set_values(statement);
  return statements.schema;
}

std::string schema_template(const TableSchema& schema, const std::string& table) {
  std::string text = fmt::format(
      "# The columns of {}, for data.schema. Names are those of its header; ranges and categories are what is\n"
      "# known of such data without looking at these records. kind: number, category, label, domain or ignored.\n"
      "# Where a value may be missing, say missing = true, and fill = … if something else than the middle of the\n"
      "# range (or no category) stands in for it.\n",
      table);
  const nlohmann::json columns = to_json(schema).at("columns");
  for (size_t c = 0; c < schema.columns.size(); ++c) text += column_text(schema.columns[c], columns[c]);
  return text;
}

}  // namespace sotto::data

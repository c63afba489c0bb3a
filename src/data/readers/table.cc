#include "data/readers/table.h"

#include "base/error.h"
#include "base/files.h"
#include "base/log.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <optional>

namespace sotto::data {
namespace {

constexpr int64_t kUnknown = -1;

class RowEncoder {
 public:
  RowEncoder(const TableSchema& schema, const std::string& where) : schema_(schema), where_(where) {}

  void encode(const io::CsvRow& row, int64_t number) {
    row_ = number;
    if (row.size() != schema_.columns.size()) {
      fail("{} cells where the schema has {} columns", row.size(), schema_.columns.size());
    }
    int64_t domain = 0;
    for (size_t c = 0; c < row.size(); ++c) {
      const Column& column = schema_.columns[c];
      switch (column.kind) {
        case ColumnKind::kNumber:
          add_number(column, row[c]);
          break;
        case ColumnKind::kCategory:
          add_category(column, row[c]);
          break;
        case ColumnKind::kLabel:
          labels.push_back(required_index(column, row[c]));
          break;
        case ColumnKind::kDomain:
          domain = required_index(column, row[c]);
          break;
        case ColumnKind::kIgnored:
          break;
      }
    }
    domains.push_back(domain);
  }

  std::vector<float> values;
  std::vector<int64_t> labels;
  std::vector<int64_t> domains;

 private:
  template <typename... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    fail_user("{}, row {}: {}", where_, row_, fmt::format(format, std::forward<Args>(args)...));
  }

  void add_indicator(const Column& column, bool missing) {
    if (column.may_be_missing) {
      values.push_back(missing ? 1.0F : 0.0F);
    } else if (missing && !schema_.is_inferred) {
      fail("'{}' is missing", column.name);
    }
  }

  void add_number(const Column& column, const std::string& cell) {
    double number = 0;
    bool missing = io::is_missing(cell);
    if (!missing && !io::parse_number(cell, number)) fail("'{}' is no number in column '{}'", cell, column.name);
    missing = missing || (column.zero_is_missing && number == 0);
    if (missing && column.fill) number = *column.fill;
    const bool in_the_middle = missing && !column.fill;
    double scaled = in_the_middle ? 0.0 : 2 * (number - column.low) / (column.high - column.low) - 1;
    if (!schema_.is_inferred) scaled = std::clamp(scaled, -1.0, 1.0);
    values.push_back(static_cast<float>(scaled));
    add_indicator(column, missing);
  }

  void add_category(const Column& column, const std::string& cell) {
    const bool missing = io::is_missing(cell) && index_of(column, cell) == kUnknown;
    const bool none = missing && column.fill_value.empty();
    const int64_t index = none ? kUnknown : index_of(column, missing ? column.fill_value : cell);
    if (!missing && index == kUnknown && !schema_.is_inferred)
      fail("'{}' is no value of column '{}'", cell, column.name);
    for (int64_t i = 0; i < static_cast<int64_t>(column.values.size()); ++i) values.push_back(i == index ? 1.0F : 0.0F);
    add_indicator(column, missing);
  }

  int64_t required_index(const Column& column, const std::string& cell) const {
    const int64_t index = index_of(column, cell);
    if (index == kUnknown) fail("'{}' is no value of column '{}'", cell, column.name);
    return index;
  }

  static int64_t index_of(const Column& column, const std::string& cell) {
    double number = 0;
    const bool is_number = io::parse_number(cell, number);
    for (size_t i = 0; i < column.values.size(); ++i) {
      double candidate = 0;
      const bool same_number = is_number && io::parse_number(column.values[i], candidate) && candidate == number;
      if (same_number || column.values[i] == cell) return static_cast<int64_t>(i);
    }
    return kUnknown;
  }

  const TableSchema& schema_;
  const std::string& where_;
  int64_t row_ = 0;
};

struct Sheet {
  io::CsvRow names;
  std::vector<io::CsvRow> rows;
  int64_t first_row = 1;  // of the file, for messages
};

bool looks_like_header(const io::CsvRow& row) {
  return std::none_of(row.begin(), row.end(), [](const std::string& cell) {
    double number = 0;
    return io::is_missing(cell) || io::parse_number(cell, number);
  });
}

io::CsvRow numbered_columns(size_t count) {
  io::CsvRow names;
  for (size_t c = 0; c < count; ++c) names.push_back(fmt::format("column {}", c + 1));
  return names;
}

io::CsvRow names_of(const TableSchema& schema) {
  io::CsvRow names;
  for (const Column& column : schema.columns) names.push_back(column.name);
  return names;
}

bool names_columns(const io::CsvRow& row, const TableSchema& schema) {
  io::CsvRow expected = names_of(schema);
  return std::is_permutation(row.begin(), row.end(), expected.begin(), expected.end());
}

Sheet read_sheet(const fs::path& path, const std::optional<TableSchema>& schema) {
  Sheet sheet;
  sheet.rows = io::parse_csv(read_file(path), path.string());
  const bool header = schema ? names_columns(sheet.rows[0], *schema) : looks_like_header(sheet.rows[0]);
  if (header) {
    sheet.names = sheet.rows[0];
    sheet.rows.erase(sheet.rows.begin());
    sheet.first_row = 2;
  } else if (schema) {
    sheet.names = names_of(*schema);
  } else {
    sheet.names = numbered_columns(sheet.rows[0].size());
  }
  if (sheet.rows.empty()) fail_user("{} has a header but no records", path.string());
  return sheet;
}

// The schema's columns in the order of the sheet.
TableSchema arranged(const TableSchema& schema, const io::CsvRow& names, const std::string& where) {
  TableSchema result;
  result.is_inferred = schema.is_inferred;
  for (const std::string& name : names) {
    const auto found =
        std::find_if(schema.columns.begin(), schema.columns.end(), [&](const Column& c) { return c.name == name; });
    if (found == schema.columns.end()) fail_user("{}: column '{}' is not in the schema", where, name);
    result.columns.push_back(*found);
  }
  return result;
}

fs::path training_table(const fs::path& path) {
  return fs::is_directory(path) ? path / "train.csv" : path;
}

// What is declared, by the config or else by a file beside the table.
std::optional<TableSchema> declared_schema(const fs::path& table, const SchemaChoice& choice) {
  if (choice.declared || choice.inferred) return choice.declared;
  const auto beside = schema_beside(table);
  return beside ? std::optional(read_schema(*beside)) : std::nullopt;
}

const std::vector<std::string>* values_of(const TableSchema& schema, ColumnKind kind) {
  for (const Column& column : schema.columns) {
    if (column.kind == kind) return &column.values;
  }
  return nullptr;
}

}  // namespace

int64_t encoded_width(const TableSchema& schema) {
  int64_t width = 0;
  for (const Column& column : schema.columns) {
    if (column.kind != ColumnKind::kNumber && column.kind != ColumnKind::kCategory) continue;
    width += column.kind == ColumnKind::kNumber ? 1 : static_cast<int64_t>(column.values.size());
    width += column.may_be_missing ? 1 : 0;
  }
  return width;
}

Records encode_table(const TableSchema& schema, const std::vector<io::CsvRow>& rows, const std::string& where,
                     int64_t first_row) {
  RowEncoder encoder(schema, where);
  int64_t number = first_row;
  for (const io::CsvRow& row : rows) encoder.encode(row, number++);
  const auto count = static_cast<int64_t>(rows.size());
  if (count == 0) return {};
  return {at::tensor(encoder.values).view({count, -1}), at::tensor(encoder.labels), at::tensor(encoder.domains), {}};
}

std::optional<fs::path> schema_beside(const fs::path& table) {
  for (const char* extension : {".schema.toml", ".schema.json"}) {
    fs::path beside = fs::path(table).replace_extension(extension);
    if (fs::exists(beside)) return beside;
  }
  return std::nullopt;
}

io::CsvRow read_header(const fs::path& path) {
  const fs::path file = training_table(path);
  const io::CsvRow first = io::parse_csv(read_file(file), file.string()).front();
  return looks_like_header(first) ? first : numbered_columns(first.size());
}

Dataset read_table(const fs::path& path, const std::string& name, const SchemaChoice& choice) {
  const bool is_folder = fs::is_directory(path);
  const fs::path train_path = training_table(path);
  const fs::path test_path = is_folder ? path / "test.csv" : fs::path();

  std::optional<TableSchema> schema = declared_schema(train_path, choice);
  const Sheet train = read_sheet(train_path, schema);
  if (!schema) {
    schema = infer_schema(train.names, train.rows, train_path.string(), train.first_row);
    info("{}: the scaling of columns was learnt from the records; for a private run declare it as data.schema",
         train_path.string());
  }

  Dataset dataset;
  dataset.name = name;
  dataset.kind = Kind::kFeatures;
  dataset.schema_inferred = schema->is_inferred;
  dataset.class_names = *values_of(*schema, ColumnKind::kLabel);
  const auto* domains = values_of(*schema, ColumnKind::kDomain);
  dataset.domain_names = domains != nullptr ? *domains : std::vector<std::string>{name};
  dataset.train = encode_table(arranged(*schema, train.names, train_path.string()), train.rows, train_path.string(),
                               train.first_row);
  if (is_folder && fs::exists(test_path)) {
    const Sheet test = read_sheet(test_path, schema);
    const bool header = test.first_row == 2;
    dataset.test = encode_table(header ? arranged(*schema, test.names, test_path.string()) : *schema, test.rows,
                                test_path.string(), test.first_row);
  }
  validate(dataset);
  return dataset;
}

}  // namespace sotto::data

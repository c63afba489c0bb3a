// What the columns of a table mean, stated rather than learnt from the data.
//
// A schema makes the encoding of a record a fixed public function: nothing about other records enters it. That is what
// a private run needs; where no schema is given, infer_schema looks at the data, which spends privacy that no ledger
// counts.
//
// As a table [data.schema] of a config, or as a TOML file (JSON alike):
//   [[columns]]
//   name = "age"
//   kind = "number"        # number, category, label, domain or ignored
//   range = [0, 120]       # numbers: what lies outside is clamped
//   missing = true         # numbers and categories: may be missing; adds a column that says so
//   fill = 40              # what stands in for a missing one; by default the middle of the range, or no category
//   [[columns]]
//   name = "outcome"
//   kind = "label"
//   values = ["well", "ill"]
#pragma once

#include "io/csv.h"

#include <nlohmann/json_fwd.hpp>

#include <cmath>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace sotto::data {

enum class ColumnKind { kNumber, kCategory, kLabel, kDomain, kIgnored };

struct Column {
  std::string name;
  ColumnKind kind = ColumnKind::kNumber;
  double low = -1.0;  // number: [low, high] becomes [-1, 1]; NaN = not stated
  double high = 1.0;
  std::vector<std::string> values =
      {};                           // category, label, domain: the possible values, in order; "1" also stands for "1.0"
  bool may_be_missing = false;      // number, category: adds a column that is 1 where the value is missing
  bool zero_is_missing = false;     // number: 0 was written for a value not measured
  std::optional<double> fill = {};  // number: stands in for a missing value; none = the middle of the range
  std::string fill_value = {};      // category: the same; "" = none of the values

  bool has_range() const { return !std::isnan(low) && !std::isnan(high); }
  bool operator==(const Column&) const = default;
};

struct TableSchema {
  std::vector<Column> columns;
  // false: values outside a range are clamped to it, unknown categories and undeclared gaps are errors. true, for
  // schemas learnt from part of the data: nothing is clamped and unknown categories become all zeros.
  bool is_inferred = false;

  bool operator==(const TableSchema&) const = default;
};

// data.schema: what a config says of the columns of its table.
struct SchemaChoice {
  std::optional<TableSchema> declared = {};
  bool inferred = false;  // asked for in so many words, at the price of any guarantee

  bool operator==(const SchemaChoice&) const = default;
};

// Exactly one label column, at most one domain column, no name twice, every range and list of values stated, or a
// UserError about `where`.
void check_schema(const TableSchema& schema, const std::string& where);

// {"columns": [...]} with the keys above. Unknown keys and wrong types are UserErrors about `where`. What is not stated
// yet (range = [], values = []) is left for check_schema to find.
TableSchema schema_from(const nlohmann::json& value, const std::string& where);
nlohmann::json to_json(const TableSchema& schema);

// From a .json file or else a TOML file, as far as it is filled in.
TableSchema read_unfinished_schema(const std::filesystem::path& path);
// The same, checked.
TableSchema read_schema(const std::filesystem::path& path);

// The column that holds the label, by the header alone: the one called label, target or class, or else the last that is
// not called domain.
size_t label_column(const io::CsvRow& names);
bool is_domain_name(const std::string& name);

// Learns the schema of a table from its rows: a column is a number unless a value is none; a column called domain is
// the domain; numbers are standardised by their mean and standard deviation. One record moves the encoding of all
// others. A number that is not finite among finite ones is a UserError; rows are counted from `first_row` in it.
TableSchema infer_schema(const io::CsvRow& names, const std::vector<io::CsvRow>& rows, const std::string& where,
                         int64_t first_row = 1);

}  // namespace sotto::data

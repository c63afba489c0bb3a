// What the columns of a table mean, stated rather than learnt from the data.
//
// A schema makes the encoding of a record a fixed public function: nothing about other records enters it. That is what
// a private run needs; where no schema is given, infer_schema looks at the data, which spends privacy that no ledger
// counts.
//
// As a file beside the table (NAME.schema.json for NAME.csv):
//   {"columns": [{"name": "age", "kind": "number", "range": [0, 120], "missing": true},
//                {"name": "stage", "kind": "category", "values": ["I", "II", "III"]},
//                {"name": "site", "kind": "domain", "values": ["north", "south"]},
//                {"name": "id", "kind": "ignored"},
//                {"name": "outcome", "kind": "label", "values": ["well", "ill"]}]}
#pragma once

#include "io/csv.h"

#include <filesystem>
#include <string>
#include <vector>

namespace sotto::data {

enum class ColumnKind { kNumber, kCategory, kLabel, kDomain, kIgnored };

struct Column {
  std::string name;
  ColumnKind kind = ColumnKind::kNumber;
  double low = -1.0;  // number: [low, high] becomes [-1, 1]
  double high = 1.0;
  std::vector<std::string> values;  // category, label, domain: the possible values, in order; "1" also stands for "1.0"
  bool may_be_missing = false;      // number, category: adds a column that is 1 where the value is missing
  bool zero_is_missing = false;     // number: 0 was written for a value not measured
};

struct TableSchema {
  std::vector<Column> columns;
  // false: values outside a range are clipped to it, unknown categories and undeclared gaps are errors. true, for
  // schemas learnt from part of the data: nothing is clipped and unknown categories become all zeros.
  bool is_inferred = false;
};

// Exactly one label column, at most one domain column, sensible ranges, or a UserError about `where`.
void check_schema(const TableSchema& schema, const std::string& where);

TableSchema read_schema(const std::filesystem::path& path);

// Learns the schema of a table from its rows: a column is a number unless a value is none; the label is the column
// called label, target or class, or else the last; a column called domain is the domain; numbers are standardised by
// their mean and standard deviation.
TableSchema infer_schema(const io::CsvRow& names, const std::vector<io::CsvRow>& rows, const std::string& where);

}  // namespace sotto::data

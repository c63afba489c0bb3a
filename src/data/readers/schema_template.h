// A schema to fill in: the columns that a table's header names, and what its owner states of them.
#pragma once

#include "data/readers/table_schema.h"

#include <string>
#include <vector>

namespace sotto::data {

// What the owner of a table knows of its columns, each as NAME=…; nothing is looked up in the records.
struct StatedColumns {
  TableSchema prior = {};                // columns described before, perhaps in part
  std::vector<std::string> ranges = {};  // "age=0:120"
  std::vector<std::string> values = {};  // "stage=I,II,III": a category, unless it is the label or the domain
  std::vector<std::string> ignored = {};
};

// One column for each name, in that order. Kinds are those of `stated`; otherwise the header's names alone tell label
// and domain, and the rest are numbers. What nobody stated is left open. Statements about columns that the header does
// not name, or that contradict each other, are UserErrors about `where`.
TableSchema stated_schema(const io::CsvRow& names, const StatedColumns& stated, const std::string& where);

// The same as TOML that read_schema takes once every range and list of values is filled in.
std::string schema_template(const TableSchema& schema, const std::string& table);

}  // namespace sotto::data

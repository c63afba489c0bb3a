// Tables of numbers and categories as feature vectors.
#pragma once

#include "data/dataset.h"
#include "data/readers/table_schema.h"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace sotto::data {

// One float32 row per record: numbers scaled to their range and clamped to it, categories one-hot, then a column that is
// 1 where a value that may be missing is missing (the value itself is then the schema's fill: 0, unless it says
// otherwise). Violations of the schema are UserErrors that name the row, counted from `first_row`.
Records encode_table(const TableSchema& schema, const std::vector<io::CsvRow>& rows, const std::string& where,
                     int64_t first_row);

// How many numbers a record of this schema is encoded as.
int64_t encoded_width(const TableSchema& schema);

// The user's own table: FILE.csv, or a folder with train.csv and perhaps test.csv. The encoding is the declared one; if
// `choice` says nothing, that of NAME.schema.toml or NAME.schema.json beside the table; failing that it is inferred from
// the training rows, which the dataset then says (see table_schema.h for what that costs). The first row is a header if
// it holds the schema's column names or, without a schema, no number and no gap.
Dataset read_table(const std::filesystem::path& path, const std::string& name, const SchemaChoice& choice = {});

// The schema file that lies beside a table, if one does.
std::optional<std::filesystem::path> schema_beside(const std::filesystem::path& table);

// The names that the first row of a table gives its columns, or "column 1" … if it is no header. Looks at nothing else.
io::CsvRow read_header(const std::filesystem::path& path);

}  // namespace sotto::data

// Tables of numbers and categories as feature vectors.
#pragma once

#include "data/dataset.h"
#include "data/readers/table_schema.h"

#include <filesystem>
#include <string>
#include <vector>

namespace sotto::data {

// One float32 row per record: numbers scaled to their range, categories one-hot, then a column that is 1 where a value
// that may be missing is missing (the value itself is then 0). Violations of the schema are UserErrors that name the
// row, counted from `first_row`.
Records encode_table(const TableSchema& schema, const std::vector<io::CsvRow>& rows, const std::string& where,
                     int64_t first_row);

// The user's own table: FILE.csv, or a folder with train.csv and perhaps test.csv. With NAME.schema.json beside it the
// encoding is fixed by that file; otherwise it is inferred from the training rows (see table_schema.h for what that
// costs). The first row is a header if it holds the schema's column names or, without a schema, no number and no gap.
Dataset read_table(const std::filesystem::path& path, const std::string& name);

}  // namespace sotto::data

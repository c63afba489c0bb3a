// Comma-separated values as RFC 4180 has them: quoted fields may hold commas, quotes and line breaks.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sotto::io {

using CsvRow = std::vector<std::string>;

// All rows, blank lines left out, spaces around unquoted fields trimmed. Rows of different lengths, a quote that is
// never closed or an empty file are UserErrors that name `where` and the row, counted from 1.
std::vector<CsvRow> parse_csv(std::string_view text, const std::string& where);

// True for "", "?", "NA", "N/A", "NaN", "null" in any case: a value that is missing.
bool is_missing(std::string_view cell);

// True for "inf", "-Infinity", "1e400": a number that no finite one stands for.
bool is_infinite(std::string_view cell);

// Reads the whole cell as a finite number, whatever the locale.
bool parse_number(std::string_view cell, double& value);

}  // namespace sotto::io

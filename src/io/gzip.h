// Gzipped bytes.
#pragma once

#include <string>
#include <string_view>

namespace sotto::io {

bool is_gzipped(std::string_view bytes);

// Inflates one or more gzip members and checks their sums. Truncated or corrupt input is a UserError about `where`.
std::string gunzip(std::string_view bytes, const std::string& where);

}  // namespace sotto::io

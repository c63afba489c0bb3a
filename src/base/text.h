// Small helpers on strings.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sotto {

std::vector<std::string> split(std::string_view text, char separator);
std::string join(const std::vector<std::string>& parts, std::string_view separator);
std::string trim(std::string_view text);
std::string to_lower_ascii(std::string_view text);

// Characters of a UTF-8 string, which is what a terminal shows.
size_t display_width(std::string_view text);

// The candidate nearest to `word` by edit distance, or "" if none is near enough to be what was meant.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

// " (did you mean 'x'?)", or "" where nothing is near: the tail of an error about an unknown name.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace sotto

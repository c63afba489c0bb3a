// "label       a text that may be long": no line wider than a terminal, and the label beside the first.
#pragma once

#include <cstddef>
#include <string>

namespace sotto::cli {

// Lines are broken between words and begin below the text, which starts at this column. Ends with a newline.
std::string labelled_line(const std::string& label, const std::string& text, size_t column = 12);

}  // namespace sotto::cli

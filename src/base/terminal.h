// The terminal that standard error is, if it is one.
#pragma once

#include <string>

namespace sotto {

// Columns of the terminal; 80 if that cannot be told.
int terminal_width();

enum class Style { kBold, kDim, kWarning };

// The text in that style where it will be seen on a terminal that may be drawn on; as it is otherwise, and whenever the
// environment holds a NO_COLOR that is not empty (no-color.org).
std::string styled(const std::string& text, Style style);

// As much of the text as fits into so many columns; what was cut off is shown as an ellipsis.
std::string cut_to_width(const std::string& text, int columns);

}  // namespace sotto

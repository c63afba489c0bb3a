#include "cli/labelled_line.h"

#include "base/text.h"
#include "cli/output.h"

#include <algorithm>

namespace sotto::cli {

std::string labelled_line(const std::string& label, const std::string& text, size_t column) {
  std::string lines = label;
  lines.append(column - std::min(column, display_width(label)), ' ');
  size_t used = std::max(column, display_width(label));
  bool begins = true;
  for (const std::string& word : split(text, ' ')) {
    const size_t width = display_width(word);
    if (!begins && used + 1 + width > kLine) {
      lines += '\n';
      lines.append(column, ' ');
      used = column;
      begins = true;
    }
    if (!begins) lines += ' ';
    lines += word;
    used += (begins ? 0 : 1) + width;
    begins = false;
  }
  return lines + "\n";
}

}  // namespace sotto::cli

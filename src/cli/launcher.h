// What the launcher knows of the program without loading it; the build writes the definitions.
#pragma once

#include <string_view>
#include <vector>

namespace sotto::cli {

struct HelpText {
  std::string_view command;  // "", "run", "data list"
  std::string_view text;
};

extern const std::string_view kVersion;
extern const std::vector<HelpText> kHelpTexts;

}  // namespace sotto::cli

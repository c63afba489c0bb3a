// What --help says, as text: wrapped to a terminal's width, and all of it at once for the launcher.
#pragma once

#include <string>

namespace CLI {
class App;
}  // namespace CLI

namespace sotto::cli {

// Breaks lines beyond 80 columns between words. Descriptions go on in their own column; examples stay as they are.
std::string wrapped_help(const std::string& help);

// C++ source of a table of every command's help, for launcher.cc.
std::string help_source(const CLI::App& program, const std::string& version);

}  // namespace sotto::cli

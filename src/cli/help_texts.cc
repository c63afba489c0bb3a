#include "cli/help_texts.h"

#include "base/text.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <string>
#include <vector>

namespace sotto::cli {
namespace {

constexpr size_t kWidth = 80;
constexpr size_t kDescription = 30;  // the column in which descriptions begin

std::string wrapped_line(const std::string& line) {
  const bool is_entry = line.starts_with("  ") && line.size() > kDescription && line[kDescription - 1] == ' ';
  const std::string indent(is_entry ? kDescription : line.find_first_not_of(' '), ' ');
  std::string text;
  std::string current = line.substr(0, line.find_first_not_of(' '));
  for (const std::string& word : split(line.substr(current.size()), ' ')) {
    const bool first = current.find_first_not_of(' ') == current.npos;
    const size_t width = display_width(current) + (first ? 0 : 1) + display_width(word);
    if (width > kWidth && !first) {
      text += current.substr(0, current.find_last_not_of(' ') + 1) + "\n";
      current = indent + word;
    } else {
      current += (first && current.size() == line.find_first_not_of(' ') ? "" : " ") + word;
    }
  }
  return text + current;
}

void add_texts(std::string& source, const CLI::App& app, const std::string& path, const std::string& before) {
  source += fmt::format("    {{\"{}\", R\"~~({})~~\"}},\n", path, wrapped_help(app.help(before)));
  for (const CLI::App* command : app.get_subcommands([](const CLI::App* a) { return !a->get_name().empty(); })) {
    add_texts(source, *command, path.empty() ? command->get_name() : path + " " + command->get_name(),
              before.empty() ? app.get_name() : before + " " + app.get_name());
  }
}

}  // namespace

std::string wrapped_help(const std::string& help) {
  std::vector<std::string> lines = split(help, '\n');
  bool in_example = false;
  for (std::string& line : lines) {
    in_example = in_example || line.starts_with("Example:");
    if (!in_example && display_width(line) > kWidth) line = wrapped_line(line);
  }
  return join(lines, "\n");
}

std::string help_source(const CLI::App& program, const std::string& version) {
  std::string source = "#include \"cli/launcher.h\"\n\nnamespace sotto::cli {\n\n";
  source += fmt::format("const std::string_view kVersion = \"{}\";\n\nconst std::vector<HelpText> kHelpTexts = {{\n",
                        version);
  add_texts(source, program, "", "");
  return source + "};\n\n}  // namespace sotto::cli\n";
}

}  // namespace sotto::cli

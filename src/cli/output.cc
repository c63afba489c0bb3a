#include "cli/output.h"

#include "base/log.h"
#include "cli/command.h"

#include <nlohmann/json.hpp>

#include <cstdio>

namespace sotto::cli {

void add_output_options(Command& command, OutputOptions& options, const std::string& json_help) {
  if (!json_help.empty()) command.flag("--json", options.json, json_help);
  command.flag(
      "--quiet", [] { set_log_level(LogLevel::kQuiet); }, "Print nothing but results and errors");
}

void print_json(const nlohmann::json& value) {
  fmt::print("{}\n", value.dump());
  std::fflush(stdout);
}

void print_text(const std::string& text) {
  if (log_level() == LogLevel::kQuiet) return;
  fmt::print("{}", text);
  std::fflush(stdout);
}

std::string epsilon_cell(std::optional<double> epsilon, privacy::Basis basis, privacy::Basis column) {
  if (!epsilon) return "∞";
  const std::string number = fmt::format("{:.4g}", *epsilon);
  return *epsilon > 0 && basis != column ? fmt::format("{} ({})", number, settings::word(basis)) : number;
}

void add_example(Command& command, const std::string& example) {
  command.footer("Example:\n  " + example);
}

}  // namespace sotto::cli

#include "cli/output.h"

#include "base/log.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <cstdio>

namespace sotto::cli {

void add_output_options(CLI::App& command, OutputOptions& options, const std::string& json_help) {
  if (!json_help.empty()) command.add_flag("--json", options.json, json_help);
  command.add_flag_callback(
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

void add_example(CLI::App& command, const std::string& example) {
  command.footer("Example:\n  " + example);
}

}  // namespace sotto::cli

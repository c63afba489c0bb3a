#include "cli/output.h"

#include "base/error.h"
#include "base/log.h"
#include "cli/command.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace sotto::cli {
namespace {

thread_local std::string* captured = nullptr;

}  // namespace

CapturedOutput::CapturedOutput() {
  captured = &text_;
}

CapturedOutput::~CapturedOutput() {
  captured = nullptr;
}

void add_output_options(Command& command, OutputOptions& options, const std::string& json_help) {
  if (!json_help.empty()) command.flag("--json", options.json, json_help);
  command.flag(
      "--quiet", [] { set_log_level(LogLevel::kQuiet); }, "Print nothing but results and errors");
}

void print_json(const nlohmann::json& value) {
  print_text(value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

void print_text(const std::string& text) {
  if (captured != nullptr) {
    *captured += text;
    return;
  }
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (!written || std::fflush(stdout) != 0) fail_user("cannot write to standard output: {}", std::strerror(errno));
}

void print_note(const std::string& text) {
  if (log_level() != LogLevel::kQuiet) print_text(text);
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

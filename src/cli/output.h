// What every command shares: --json, --quiet, and where output goes.
#pragma once

#include "privacy/basis.h"

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <optional>
#include <string>

namespace sotto::cli {

class Command;

// Characters of a line that any terminal shows.
inline constexpr size_t kLine = 80;

struct OutputOptions {
  bool json = false;
};

// Adds --json and --quiet to a subcommand. `json_help` says what the JSON holds; empty = the command has no --json.
void add_output_options(Command& command, OutputOptions& options, const std::string& json_help);

// Prints exactly one JSON value on standard output. Text in it that is not UTF-8 shows replacement characters.
void print_json(const nlohmann::json& value);

// Prints a result on standard output. What cannot be written, to a full disk for example, is a UserError.
void print_text(const std::string& text);

// The same for words about a result that is elsewhere, in a file: nothing with --quiet.
void print_note(const std::string& text);

// While it lives, what this thread prints is kept here instead.
class CapturedOutput {
 public:
  CapturedOutput();
  ~CapturedOutput();
  CapturedOutput(const CapturedOutput&) = delete;
  CapturedOutput& operator=(const CapturedOutput&) = delete;
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// A run's ε, ∞ if it has none, in a column that is named after the weakest basis of the runs in it: one that is proven
// among others that are not says so itself.
std::string epsilon_cell(std::optional<double> epsilon, privacy::Basis basis, privacy::Basis column);

// The "Example:" footer of --help.
void add_example(Command& command, const std::string& example);

}  // namespace sotto::cli

// What every command shares: --json, --quiet, and where output goes.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>

namespace sotto::cli {

class Command;

struct OutputOptions {
  bool json = false;
};

// Adds --json and --quiet to a subcommand. `json_help` says what the JSON holds; empty = the command has no --json.
void add_output_options(Command& command, OutputOptions& options, const std::string& json_help);

// Prints exactly one JSON value on standard output.
void print_json(const nlohmann::json& value);

// Prints text for people on standard output, unless --quiet.
void print_text(const std::string& text);

// The "Example:" footer of --help.
void add_example(Command& command, const std::string& example);

}  // namespace sotto::cli

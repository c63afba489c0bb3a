// The command line as commands see it: subcommands, options, flags. CLI11 stays behind command.cc, because its headers
// take longer to compile than most commands.
#pragma once

#include <concepts>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace sotto::cli {

template <typename Value, typename... Types>
concept OneOf = (std::same_as<Value, Types> || ...);

// What an option can hold; command.cc has code for each of them.
template <typename Value>
concept OptionValue = OneOf<Value, std::string, std::filesystem::path, int, int64_t, uint64_t, double,
                            std::vector<std::string>, std::vector<int64_t>>;

// One option or positional argument. A handle: copies mean the same option, and methods return it again. A value that
// does not fit is an error of the command line.
class Option {
 public:
  Option required(bool is_required = true);
  // Bounds are inclusive, and --help shows them.
  Option range(int low, int high);
  Option range(double low, double high);
  Option positive();
  Option at_least(int64_t low);
  Option one_of(const std::vector<std::string>& choices);
  // Given several times, with one value each; without this, an option of a vector takes all values that follow it.
  Option repeatable();
  Option comma_separated();
  // --help shows the value that the target has now.
  Option shows_default();
  // What --help calls the value, instead of TEXT, INT, FLOAT.
  Option type_name(const std::string& name);

 private:
  friend class Command;
  explicit Option(CLI::Option* option) : option_(option) {}
  CLI::Option* option_;
};

// A command or a group of options in it. A handle: copies mean the same command, and live as long as the Program.
class Command {
 public:
  Command subcommand(const std::string& name, const std::string& help);
  // A group of options under its own heading in --help, of which exactly one must be given.
  Command exactly_one_of(const std::string& heading);
  // Exactly one subcommand must be given.
  void require_subcommand();

  // `names` is "--long", "-s,--long", or a NAME without hyphens for a positional argument. Targets are written before
  // the callback runs, only if the option was given, and must live until then.
  template <OptionValue Value>
  Option option(const std::string& names, Value& target, const std::string& help = "");
  void flag(const std::string& names, bool& target, const std::string& help);
  void flag(const std::string& names, const std::function<void()>& when_given, const std::string& help);
  // Whether this option of the command was on the command line.
  bool has(const std::string& name) const;

  // The last lines of --help.
  void footer(const std::string& text);
  // What the command does, once everything on the command line was understood.
  void callback(const std::function<void()>& action);

 protected:
  explicit Command(CLI::App* app) : app_(app) {}
  CLI::App* app_;
};

// The whole command line: the command above all others, with --help and --version.
class Program : public Command {
 public:
  Program(const std::string& name, const std::string& help, const std::string& version);
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program();

  // Parses the command line and runs the callback of the command that was given, whose exceptions come through. Returns
  // the exit code, also after --help and --version. A command line that is wrong is a UserError.
  int run(int argc, char** argv);

  // Source of what the launcher answers by itself (help_texts.h).
  std::string help_source(const std::string& version) const;

 private:
  std::unique_ptr<CLI::App> owned_app_;
};

}  // namespace sotto::cli

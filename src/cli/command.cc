#include "cli/command.h"

#include "base/text.h"
#include "cli/help_texts.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

namespace sotto::cli {
namespace {

// CLI11 says only that a command is missing when an unknown one was given.
std::string explain(const CLI::ParseError& error, const CLI::App& program, int argc, char** argv) {
  const std::string first = argc > 1 ? argv[1] : "";
  if (error.get_exit_code() != static_cast<int>(CLI::ExitCodes::RequiredError) || first.empty() ||
      first.starts_with('-')) {
    return error.what();
  }
  std::vector<std::string> commands;
  for (const CLI::App* command : program.get_subcommands({})) commands.push_back(command->get_name());
  if (std::find(commands.begin(), commands.end(), first) != commands.end()) return error.what();
  return fmt::format("there is no command '{}'{}", first, did_you_mean(first, commands));
}

}  // namespace

Option Option::required(bool is_required) {
  return Option(option_->required(is_required));
}

Option Option::range(int low, int high) {
  return Option(option_->check(CLI::Range(low, high)));
}

Option Option::range(double low, double high) {
  return Option(option_->check(CLI::Range(low, high)));
}

Option Option::positive() {
  const auto problem = [](const std::string& text) {
    double value = 0;
    const bool above = CLI::detail::lexical_cast(text, value) && value > 0;
    return above ? std::string() : fmt::format("must be above 0, not {}", text);
  };
  return Option(option_->check(CLI::Validator(problem, "POSITIVE")));
}

Option Option::at_least(int64_t low) {
  const auto problem = [low](const std::string& text) {
    int64_t value = 0;
    const bool enough = CLI::detail::lexical_cast(text, value) && value >= low;
    return enough ? std::string() : fmt::format("must be {} or more, not {}", low, text);
  };
  return Option(option_->check(CLI::Validator(problem, fmt::format("INT ≥ {}", low))));
}

Option Option::one_of(const std::vector<std::string>& choices) {
  return Option(option_->check(CLI::IsMember(choices)));
}

Option Option::repeatable() {
  return Option(option_->take_all()->allow_extra_args(false));
}

Option Option::comma_separated() {
  return Option(option_->delimiter(','));
}

Option Option::shows_default() {
  return Option(option_->capture_default_str());
}

Option Option::type_name(const std::string& name) {
  return Option(option_->type_name(name));
}

Command Command::subcommand(const std::string& name, const std::string& help) {
  CLI::App* const command = app_->add_subcommand(name, help);
  command->footer("");  // not the one of the command above
  return Command(command);
}

Command Command::exactly_one_of(const std::string& heading) {
  CLI::Option_group* group = app_->add_option_group(heading);
  group->require_option(1);
  return Command(group);
}

void Command::require_subcommand() {
  app_->require_subcommand(1);
}

template <OptionValue Value>
Option Command::option(const std::string& names, Value& target, const std::string& help) {
  return Option(app_->add_option(names, target, help));
}

template Option Command::option(const std::string&, std::string&, const std::string&);
template Option Command::option(const std::string&, std::filesystem::path&, const std::string&);
template Option Command::option(const std::string&, int&, const std::string&);
template Option Command::option(const std::string&, int64_t&, const std::string&);
template Option Command::option(const std::string&, uint64_t&, const std::string&);
template Option Command::option(const std::string&, double&, const std::string&);
template Option Command::option(const std::string&, std::vector<std::string>&, const std::string&);
template Option Command::option(const std::string&, std::vector<int64_t>&, const std::string&);

void Command::flag(const std::string& names, bool& target, const std::string& help) {
  app_->add_flag(names, target, help);
}

void Command::flag(const std::string& names, const std::function<void()>& when_given, const std::string& help) {
  app_->add_flag_callback(names, when_given, help);
}

bool Command::has(const std::string& name) const {
  return app_->count(name) > 0;
}

void Command::footer(const std::string& text) {
  app_->footer(text);
}

void Command::callback(const std::function<void()>& action) {
  app_->callback(action);
}

Program::Program(const std::string& name, const std::string& help, const std::string& version)
    : Command(new CLI::App(help, name)), owned_app_(app_) {
  app_->set_version_flag("--version", version);
}

Program::~Program() = default;

std::string Program::help_source(const std::string& version) const {
  return cli::help_source(*app_, version);
}

int Program::run(int argc, char** argv) {
  try {
    app_->parse(argc, argv);
    return 0;
  } catch (const CLI::ParseError& error) {
    const bool asked_for_help = error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success);
    if (error.get_name() == "CallForHelp") {
      fmt::print("{}", wrapped_help(app_->help()));
      return 0;
    }
    if (asked_for_help) return app_->exit(error);
    fmt::print(stderr, "{}: {} (see {} --help)\n", app_->get_name(), explain(error, *app_, argc, argv),
               app_->get_name());
    return 2;
  }
}

}  // namespace sotto::cli

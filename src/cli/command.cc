#include "cli/command.h"

#include "base/error.h"
#include "base/launch.h"
#include "base/text.h"
#include "cli/help_texts.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

namespace sotto::cli {
namespace {

// The command that was meant, as far as it was understood: sotto, sotto ledger, sotto ledger show.
struct Understood {
  const CLI::App* command;
  std::string name;
};

Understood understood(const CLI::App& program) {
  Understood result{&program, program.get_name()};
  for (std::vector<CLI::App*> next = result.command->get_subcommands(); !next.empty();
       next = result.command->get_subcommands()) {
    result.command = next.front();
    result.name += " " + next.front()->get_name();
  }
  return result;
}

std::vector<std::string> commands_of(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::App* one : command.get_subcommands({})) {
    if (!one->get_name().empty()) names.push_back(one->get_name());  // those without are groups of options
  }
  return names;
}

std::vector<std::string> options_of(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options({})) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

// What CLI11 found, in words that name what was written and what could be.
std::string explain(const CLI::ParseError& error, const CLI::App& program) {
  const Understood at = understood(program);
  std::vector<std::string> words = program.remaining(true);
  const std::vector<std::string> commands = commands_of(*at.command);
  const bool required = error.get_exit_code() == static_cast<int>(CLI::ExitCodes::RequiredError);
  if (required && !commands.empty()) {
    if (words.empty() || words.front().starts_with('-'))
      return fmt::format("{}: say which: {}", at.name, join(commands, ", "));
    return at.command == &program
               ? fmt::format("there is no command '{}'{}", words.front(), did_you_mean(words.front(), commands))
               : fmt::format("there is no '{} {}'{}", at.name, words.front(), did_you_mean(words.front(), commands));
  }
  if (error.get_exit_code() != static_cast<int>(CLI::ExitCodes::ExtrasError) || words.empty()) return error.what();
  const auto option = std::find_if(words.begin(), words.end(), [](const auto& word) { return word.starts_with('-'); });
  if (option == words.end()) return fmt::format("'{}' is one word too many", words.front());
  const std::string name = option->substr(0, option->find('='));
  return fmt::format("there is no option {}{}", name, did_you_mean(name, options_of(*at.command)));
}

template <typename Value>
CLI::Validator within(Value low, Value high) {
  const auto problem = [low, high](const std::string& text) {
    Value value{};
    const bool inside = CLI::detail::lexical_cast(text, value) && value >= low && value <= high;
    return inside ? std::string() : fmt::format("must be a number from {} to {}, not {}", low, high, text);
  };
  return CLI::Validator(problem, CLI::Range(low, high).get_description());
}

}  // namespace

Option Option::required(bool is_required) {
  return Option(option_->required(is_required));
}

Option Option::range(int low, int high) {
  return Option(option_->check(within(low, high)));
}

Option Option::range(double low, double high) {
  return Option(option_->check(within(low, high)));
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
  const auto problem = [choices](const std::string& text) {
    if (std::find(choices.begin(), choices.end(), text) != choices.end()) return std::string();
    return fmt::format("must be one of {}, not '{}'{}", join(choices, ", "), text, did_you_mean(text, choices));
  };
  return Option(option_->check(CLI::Validator(problem, CLI::IsMember(choices).get_description())));
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
    if (launch().rank > 0) return 0;  // rank 0 says it, and mpirun would end it before if this rank failed
    fail_user("{} (see {} --help)", explain(error, *app_), understood(*app_).name);
  }
}

}  // namespace sotto::cli

#include "base/allocator.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "base/text.h"
#include "cli/commands.h"

#include <ATen/Parallel.h>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>

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
  return fmt::format("there is no command '{}'{}", first, sotto::did_you_mean(first, commands));
}

int run(int argc, char** argv) {
  CLI::App program("Differentially private personalised federated learning.", "sotto");
  program.set_version_flag("--version", SOTTO_VERSION);
  program.require_subcommand(1);
  program.footer("Start here:\n  sotto run examples/1_first_federation.toml");
  sotto::cli::add_run(program);
  sotto::cli::add_plan(program);
  sotto::cli::add_sweep(program);
  sotto::cli::add_fit(program);
  sotto::cli::add_report(program);
  sotto::cli::add_ui(program);
  sotto::cli::add_ledger(program);
  sotto::cli::add_audit(program);
  sotto::cli::add_attack(program);
  sotto::cli::add_predict(program);
  sotto::cli::add_embed(program);
  sotto::cli::add_export(program);
  sotto::cli::add_data(program);
  sotto::cli::add_pretrain(program);
  sotto::cli::add_account(program);
  sotto::cli::add_calibrate(program);
  sotto::cli::add_bench(program);
  try {
    program.parse(argc, argv);
    return 0;
  } catch (const CLI::ParseError& error) {
    const bool asked_for_help = error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success);
    if (asked_for_help) return program.exit(error);
    fmt::print(stderr, "sotto: {} (see sotto --help)\n", explain(error, program, argc, argv));
    return 2;
  }
}

}  // namespace

int main(int argc, char** argv) {
  sotto::keep_freed_memory();
  std::signal(SIGXFSZ,
              SIG_IGN);  // a write beyond a file-size limit fails like one to a full disk, instead of killing us
  try {
    return run(argc, argv);
  } catch (const sotto::UserError& error) {
    fmt::print(stderr, "sotto: {}\n", error.what());
    return 2;
  } catch (const sotto::Interrupted& stop) {
    fmt::print(stderr, "sotto: {}\n", stop.what());
    return 1;
  } catch (const std::exception& error) {
    fmt::print(stderr, "sotto: unexpected failure: {}\n", error.what());
    return 1;
  }
}

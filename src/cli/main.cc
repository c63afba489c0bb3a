#include "base/allocator.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "cli/commands.h"

#include <ATen/Parallel.h>

#include <CLI/CLI.hpp>

#include <csignal>
#include <cstdio>
#include <exception>

namespace {

int run(int argc, char** argv) {
  CLI::App program("Differentially private personalised federated learning.", "sotto");
  program.set_version_flag("--version", SOTTO_VERSION);
  program.require_subcommand(1);
  program.footer("Start here:\n  sotto run examples/1_first_federation.toml");
  sotto::cli::add_run(program);
  sotto::cli::add_plan(program);
  sotto::cli::add_sweep(program);
  sotto::cli::add_report(program);
  sotto::cli::add_predict(program);
  sotto::cli::add_export(program);
  sotto::cli::add_data(program);
  sotto::cli::add_pretrain(program);
  sotto::cli::add_bench(program);
  try {
    program.parse(argc, argv);
    return 0;
  } catch (const CLI::ParseError& error) {
    const bool asked_for_help = error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success);
    if (asked_for_help) return program.exit(error);
    fmt::print(stderr, "sotto: {} (see sotto --help)\n", error.what());
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

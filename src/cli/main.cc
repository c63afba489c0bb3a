#include "base/allocator.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "cli/command.h"
#include "cli/commands.h"

#include <ATen/Parallel.h>

#include <csignal>
#include <cstdio>
#include <exception>

namespace {

int run(int argc, char** argv) {
  sotto::cli::Program program("sotto", "Differentially private personalised federated learning.", SOTTO_VERSION);
  program.require_subcommand();
  program.footer("Start here:\n  sotto run examples/1_first_federation.toml");
  sotto::cli::add_run(program);
  sotto::cli::add_plan(program);
  sotto::cli::add_sweep(program);
  sotto::cli::add_fit(program);
  sotto::cli::add_report(program);
  sotto::cli::add_ui(program);
  sotto::cli::add_ledger(program);
  sotto::cli::add_list(program);
  sotto::cli::add_audit(program);
  sotto::cli::add_attack(program);
  sotto::cli::add_predict(program);
  sotto::cli::add_embed(program);
  sotto::cli::add_export(program);
  sotto::cli::add_data(program);
  sotto::cli::add_pretrain(program);
  sotto::cli::add_account(program);
  sotto::cli::add_calibrate(program);
  sotto::cli::add_serve(program);
  sotto::cli::add_join(program);
  sotto::cli::add_certs(program);
  sotto::cli::add_enrol(program);
  sotto::cli::add_bench(program);
  return program.run(argc, argv);
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

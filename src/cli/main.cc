#include "base/allocator.h"
#include "base/error.h"
#include "base/files.h"
#include "base/interrupt.h"
#include "base/json_log.h"
#include "cli/command.h"
#include "cli/commands.h"

#include <c10/util/Exception.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <csignal>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <new>
#include <string>
#include <string_view>

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
  sotto::cli::add_check(program);
  sotto::cli::add_status(program);
  sotto::cli::add_certs(program);
  sotto::cli::add_enrol(program);
  sotto::cli::add_bench(program);
  if (argc == 3 && std::string_view(argv[1]) == "--write-help") {  // for the build
    sotto::write_file_atomically(argv[2], program.help_source(SOTTO_VERSION));
    return 0;
  }
  return program.run(argc, argv);
}

void complain(const std::string& message) {
  if (!sotto::log_failure_as_json(message)) fmt::print(stderr, "sotto: {}\n", message);
}

}  // namespace

int main(int argc, char** argv) {
  sotto::keep_freed_memory();
  std::signal(SIGXFSZ,
              SIG_IGN);  // a write beyond a file-size limit fails like one to a full disk, instead of killing us
  try {
    return run(argc, argv);
  } catch (const sotto::UserError& error) {
    complain(error.what());
    return 2;
  } catch (const sotto::Interrupted& stop) {
    if (sotto::logs_json()) {
      sotto::log_event("stopped", {{"how", stop.what()}});
    } else {
      complain(stop.what());
    }
    return 1;
  } catch (const std::filesystem::filesystem_error& error) {
    fmt::print(stderr, "sotto: {}: {}\n", error.path1().string(), error.code().message());
    return 2;
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "sotto: there is not enough memory for this; use a smaller model, batch or dataset\n");
    return 1;
  } catch (const c10::Error& error) {  // with a stack trace behind its first line
    const std::string text = error.what_without_backtrace();
    fmt::print(stderr, "sotto: unexpected failure: {}\n", text.substr(0, text.find('\n')));
    return 1;
  } catch (const std::exception& error) {
    complain(fmt::format("unexpected failure: {}", error.what()));
    return 1;
  }
}

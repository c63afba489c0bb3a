#include "artifacts/shared_work.h"
#include "base/allocator.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "base/json_log.h"
#include "base/launch.h"
#include "base/log.h"
#include "base/printable.h"
#include "cli/program.h"
#include "transport/ranks.h"

#include <c10/util/Exception.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <csignal>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <new>
#include <string>

namespace {

void complain(std::string message) {
  const int rank = sotto::launch().rank;
  if (rank > 0) message = fmt::format("rank {} on {}: {}", rank, sotto::host_name(), message);
  if (!sotto::log_failure_as_json(message)) fmt::print(stderr, "sotto: {}\n", sotto::printable(message));
}

int run_and_explain(int argc, char** argv) {
  try {
    return sotto::cli::run_program(argc, argv);
  } catch (const sotto::UserError& error) {
    complain(error.what());
    return 2;
  } catch (const sotto::artifacts::OthersAtWork& done) {
    sotto::info("{}", done.what());
    return 0;
  } catch (const sotto::Interrupted& stop) {
    if (sotto::logs_json()) {
      sotto::log_event("stopped", {{"how", stop.what()}});
    } else {
      complain(stop.what());
    }
    return 1;
  } catch (const std::filesystem::filesystem_error& error) {
    complain(fmt::format("{}: {}", error.path1().string(), error.code().message()));
    return 2;
  } catch (const std::bad_alloc&) {
    complain("there is not enough memory for this; use a smaller model, batch or dataset");
    return 1;
  } catch (const c10::Error& error) {  // with a stack trace behind its first line
    const std::string text = error.what_without_backtrace();
    complain("unexpected failure: " + text.substr(0, text.find('\n')));
    return 1;
  } catch (const std::exception& error) {
    complain(fmt::format("unexpected failure: {}", error.what()));
    return 1;
  }
}

}  // namespace

int main(int argc, char** argv) {
  sotto::keep_freed_memory();
  // A write beyond a file-size limit fails like one to a full disk, instead of killing us.
  std::signal(SIGXFSZ, SIG_IGN);
  const int exit_code = run_and_explain(argc, argv);
  if (exit_code != 0) sotto::transport::abandon_ranks(exit_code);
  return exit_code;
}

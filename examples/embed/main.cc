// Runs a federation from a program of one's own. Usage: embed CONFIG.toml RUN_DIRECTORY
#include "base/error.h"
#include "config/load.h"
#include "methods/catalogue.h"
#include "run/execute.h"

#include <nlohmann/json.hpp>

#include <cstdio>

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: embed CONFIG.toml RUN_DIRECTORY\n");
    return 2;
  }
  try {
    const auto spec = sotto::config::load_run_spec(argv[1], {}, sotto::methods::method_reader());
    const auto setup = sotto::federation::Setup(spec);
    const auto summary = sotto::run::execute(setup, {.folder = argv[2], .resume = false, .threads = 2});
    if (!summary) return 1;
    std::printf("mean accuracy over clients: %.4f\n", (*summary)["accuracy"]["mean"].get<double>());
    return 0;
  } catch (const sotto::UserError& error) {
    std::fprintf(stderr, "embed: %s\n", error.what());
    return 2;
  }
}

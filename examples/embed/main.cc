// Runs a federation from a program of one's own. Usage: embed CONFIG.toml RUN_DIRECTORY
#include "base/error.h"
#include "config/load.h"
#include "run/execute.h"

#include <nlohmann/json.hpp>

#include <cstdio>

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: embed CONFIG.toml RUN_DIRECTORY\n");
    return 2;
  }
  try {
    const sotto::federation::Setup setup(sotto::config::load_run_spec(argv[1], {}));
    sotto::run::Run run(setup, {.folder = argv[2], .threads = 2});
    while (const auto record = run.next_round()) {
      std::printf("round %lld: loss %.4f\n", static_cast<long long>(record->round), record->train_loss);
    }
    std::printf("mean accuracy over clients: %.4f\n", run.finish()["accuracy"]["mean"].get<double>());
    return 0;
  } catch (const sotto::UserError& error) {
    std::fprintf(stderr, "embed: %s\n", error.what());
    return 2;
  }
}

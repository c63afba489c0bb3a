// Runs a federation from a program of one's own, with methods of its own. Usage: embed CONFIG.toml RUN_DIRECTORY [KEY=VALUE…]
#include "methods.h"

#include <sotto/run.h>

#include <cstdio>

namespace {

void run(const sotto::RunOptions& options) {
  for (const sotto::PlannedRelease& release : sotto::plan(options)) {
    std::printf("plan: %s, %s, %s\n", release.what.c_str(), release.mechanism.c_str(), release.how_often.c_str());
  }
  sotto::Run run(options);
  while (const auto round = run.next_round()) {
    std::printf("round %lld: loss %.4f\n", static_cast<long long>(round->round), round->train_loss);
  }
  const sotto::RunSummary summary = run.finish();
  std::printf("%s: mean accuracy over clients: %.4f\n", summary.method.c_str(), summary.evaluation.mean_accuracy);
  if (summary.privacy.claimed) std::printf("claimed ε: %.4g\n", summary.privacy.claimed->max);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: embed CONFIG.toml RUN_DIRECTORY [KEY=VALUE…]\n");
    return 2;
  }
  try {
    sotto::add_method(server_momentum());
    sotto::add_method(noisy_updates());
    run({.config = argv[1], .set = {argv + 3, argv + argc}, .folder = argv[2], .threads = 2});
    return 0;
  } catch (const sotto::Error& error) {
    std::fprintf(stderr, "embed: %s\n", error.what());
    return 2;
  }
}

// Releases tensors of one's own until a budget is spent. Usage: guard HOME
#include <ATen/ATen.h>

#include <sotto/accounting.h>
#include <sotto/privacy.h>

#include <cstdio>
#include <string>

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: guard HOME\n");
    return 2;
  }
  try {
    const sotto::Budget budget{.epsilon = 2, .delta = 1e-6, .adjacency = sotto::Adjacency::kReplace};
    sotto::Guard guard({.home = argv[1], .budget = budget});
    const double multiplier =
        sotto::calibrate(budget.epsilon, budget.delta, {.adjacency = budget.adjacency, .count = 4});
    std::printf("noise multiplier for four releases: %.3f\n", multiplier);
    for (int round = 1; round <= 5; ++round) {
      const sotto::Tensors update = {{"weight", at::ones({3, 4})}, {"bias", at::zeros({3})}};
      const sotto::Tensors noisy = guard.release({.what = "update",
                                                  .key = "round " + std::to_string(round),
                                                  .bound = 1,
                                                  .noise_multiplier = multiplier * 1.01},
                                                 update);
      std::printf("round %d: %zu tensors left, ε spent %.3f of %g\n", round, noisy.size(), guard.spent(),
                  guard.budget());
    }
    return 0;
  } catch (const sotto::BudgetSpent& refusal) {
    std::printf("refused: %s\n", refusal.what());
    const sotto::Ledger ledger(argv[1]);
    ledger.verify();
    std::printf("ledger: %zu rows, chain intact\n", ledger.rows().size());
    return 0;
  } catch (const sotto::Error& error) {
    std::fprintf(stderr, "guard: %s\n", error.what());
    return 2;
  }
}

// A lower bound on ε from one run with many canaries (Steinke, Nasr, Jagielski, NeurIPS 2023).
//
// Each of m canaries is in the data or not by a fair coin of its own. The attacker guesses some of the coins; if the
// run is (ε, δ)-private for each canary, the number of right guesses is hardly larger than a binomial's with success
// probability e^ε/(1 + e^ε).
#pragma once

#include <cstdint>
#include <vector>

namespace sotto::audit {

struct Guesses {
  int64_t canaries = 0;
  int64_t made = 0;  // the others were abstained from
  int64_t right = 0;
};
// How probable so many right guesses are at most, if the run is (epsilon, delta)-private for every coin.
double one_run_p_value(const Guesses& guesses, double epsilon, double delta);

// What a coin decides, against what the run promises to hide.
enum class Coin {
  kWithin,     // one change
  kTwoChanges  // two, for example a record that becomes another under add-remove: (2ε, (1 + e^ε)δ) is promised
};

// The largest ε that is refuted with probability of error alpha.
double one_run_epsilon(const Guesses& guesses, double delta, double alpha, Coin coin = Coin::kWithin);

// Guesses "in" for the largest `each_way` scores and "out" for the smallest.
Guesses guess_by_score(const std::vector<double>& scores, const std::vector<bool>& in, int64_t each_way);

// The best bound over several numbers of guesses, with alpha divided among them.
struct OneRunBound {
  double epsilon = 0;
  Guesses guesses = {};
};
OneRunBound one_run_bound(const std::vector<double>& scores, const std::vector<bool>& in, double delta, double alpha,
                          Coin coin = Coin::kWithin);

}  // namespace sotto::audit

// One release as the ledger stores it.
#pragma once

#include "privacy/neighbours.h"

#include <cstdint>
#include <string>

namespace sotto::privacy {

inline constexpr const char* kClearMechanism = "in-the-clear";
inline constexpr const char* kTrustedMechanism = "trusted-server";
inline constexpr const char* kGaussianMechanism = "gaussian";
// Of a cohort of fixed size that is drawn in secret.
inline constexpr const char* kCohortGaussianMechanism = "cohort-gaussian";
inline constexpr const char* kLaplaceMechanism = "laplace";
inline constexpr const char* kTopKMechanism = "laplace-top-k";
inline constexpr const char* kGumbelTopKMechanism = "gumbel-top-k";
inline constexpr const char* kDiscreteGaussianMechanism = "discrete-gaussian";

// Stands for every client: a release that may depend on any of them.
inline constexpr int64_t kEveryone = -1;

// What the method's paper says a release costs, where that is not what the noise says.
struct Claim {
  // "": the truth, as far as it can be proven.
  // "renyi": `steps` Gaussian steps of `multiplier`, by Rényi orders 2 … 64 and the classical conversion.
  // "each": `epsilon` for this release; releases add up.
  // "run": `epsilon` for the whole run, however many releases it makes.
  std::string by = {};
  double multiplier = 0;
  int64_t steps = 0;
  double epsilon = 0;

  bool operator==(const Claim&) const = default;
};
inline constexpr const char* kClaimRenyi = "renyi";
inline constexpr const char* kClaimEach = "each";
inline constexpr const char* kClaimRun = "run";

struct Event {
  int64_t round = 0;
  int64_t client = 0;             // or kEveryone
  std::string observer = {};      // who is the first to see it: server, clients, public
  std::string what = {};          // what was released: model, prototypes, …
  std::string mechanism = {};     // one of the names above
  std::string why_unproven = {};  // why no finite ε can be proven for it; empty if one can

  double noise_scale = 0;    // standard deviation (Gaussian) or scale (Laplace, Gumbel)
  double sensitivity = 0;    // what one change moves, under `neighbours`, in the mechanism's norm
  double sampling_rate = 1;  // each record (or client) takes part in a step with this probability (Poisson)
  int64_t batches = 1;       // random allocation: a record is in one of so many batches, drawn anew for each of `steps`
  int64_t steps = 1;         // how often a record is touched; picks of a top-k
  double slack = 0;          // δ lost to the finite precision of the noise
  Claim claim = {};
  Neighbours neighbours = {};
  std::string generator = "none";  // secure, replay, none
  std::string parameters = {};     // the mechanism's own, as JSON: groups, grids
  std::string run = {};            // in a home's ledger: whose release it is; "" in a run's own

  bool operator==(const Event&) const = default;
};

}  // namespace sotto::privacy

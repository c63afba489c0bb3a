// Which of a client's records each step of a descent sees.
//
// Proofs: docs/proofs/poisson-batches.md, disjoint-batches.md, random-allocation.md
#pragma once

#include "base/random.h"
#include "privacy/dpsgd/noisy_descent.h"

#include <cstdint>
#include <vector>

namespace sotto::privacy {

int64_t batches_per_epoch(const DescentPlan& plan);
int64_t steps_per_epoch(const DescentPlan& plan);

// Positions into the client's records, step after step of one epoch. Who is in which batch is as secret as the noise: a
// Poisson batch is amplified for that, and under add-remove a known assignment by position would shift with a record
// that disappears. Secret, it is an average over assignments that leave all others where they are.
class Batches {
 public:
  // The plan must outlive it. `indices` are the client's records.
  Batches(const DescentPlan& plan, const at::Tensor& indices, const Receipt& receipt, const ReleaseContext& context);
  std::vector<at::Tensor> next_epoch();

 private:
  const DescentPlan& plan_;
  int64_t records_;
  std::vector<double> rates_;
  NoiseSource secret_;
  RandomStream order_;
};

}  // namespace sotto::privacy

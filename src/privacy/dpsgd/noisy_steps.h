// DP-SGD whose gradients are made elsewhere: many noisy steps, one release.
//
// For what no model of the catalogue computes, e.g. prompts of a text tower. Every step the caller bounds what its
// batch says, noise is added, and the caller moves on by the noisy values alone. What it then holds is post-processing
// of them, and the ledger has one row for it: the step's event × how often a record is touched.
//
// What the caller starts from must be public or made of releases, as for NoisyDescent.
//
// Proof: docs/proofs/noisy-descent.md
#pragma once

#include "privacy/dpsgd/noisy_descent.h"
#include "privacy/mechanisms/gaussian.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>

namespace sotto::privacy {

class NoisySteps {
 public:
  // Of the plan it reads how records are dealt to steps; bound and noise are the mechanism's. Of the plan's steps only
  // the first `most` are taken, if it is not 0; what the plan costs, with all of them, is charged.
  NoisySteps(DescentPlan plan, GroupwiseGaussian mechanism, int64_t most = 0)
      : plan_(std::move(plan)), mechanism_(std::move(mechanism)), most_(most) {}

  const DescentPlan& plan() const { return plan_; }
  int64_t steps() const { return most_ == 0 ? plan_.steps() : std::min(plan_.steps(), most_); }
  const GroupwiseGaussian& mechanism() const { return mechanism_; }

  // What `run` releases, and what that costs.
  Channel channel(std::string what, Observer observer) const;

  // What one step says of the client's records at `positions` (there may be none), bounded as the mechanism expects.
  using Gradient = std::function<Bounded(const at::Tensor& positions)>;
  // Moves on by the same with noise.
  using Update = std::function<void(const NamedTensors& noisy)>;
  // What is released in the end: made of public and of noisy values alone.
  using Result = std::function<NamedTensors()>;

  // Pays for the channel, then takes the steps. `indices` are the client's records. Noise and batches come from the
  // context's generator.
  Release run(const Channel& channel, const at::Tensor& indices, const ReleaseContext& context,
              const Gradient& gradient, const Update& update, const Result& result) const;

 private:
  DescentPlan plan_;
  GroupwiseGaussian mechanism_;
  int64_t most_;
};

}  // namespace sotto::privacy

// Can two neighbouring worlds be told apart by what is released?
//
// A case says what an observer sees of one trial in one world. The audit draws many trials of both, turns each into a
// few numbers and bounds ε from below (bounds.h). How to turn a release into a number is learnt from pilot trials,
// which have the same seeds in both worlds: replayed noise is then the same noise, so that the difference of two
// releases is what the canary does and nothing else.
//
//   projection   onto what the canary moves, every tensor in units of its own noise
//   confined     the same in units of the noise's own covariance, where it lies in few directions: post-processing by a
//                linear map of fewer inputs than outputs
//   likelihood   of Gaussians of the pilot's means and spreads: tried where spreads differ between the worlds
//   equality     of whatever has no noise, and of the names and shapes of what is released
#pragma once

#include "audit/bounds.h"
#include "base/named_tensors.h"

#include <cstdint>
#include <functional>
#include <string>

namespace sotto::audit {

enum class World { kWithout, kWith };

// What the observer sees of one trial. The same world and seed give the same; other seeds are fresh noise.
using Draw = std::function<NamedTensors(World world, uint64_t seed)>;
// One Draw per thread.
using MakeDraw = std::function<Draw()>;

struct TrialOptions {
  int64_t trials = 100000;  // in each world
  int64_t pilots = 64;
  double delta = 1e-5;
  double alpha = 0.05;
  uint64_t seed = 1;
  int threads = 1;
};

struct Finding {
  Bounds bounds;          // the largest of any statistic; the fit is that of the strongest
  std::string statistic;  // the strongest: projection, confined, likelihood, equality, or none: nothing differs
};

// All bounds of all statistics hold together with probability 1 - alpha.
Finding tell_apart(const MakeDraw& make_draw, const TrialOptions& options);

// How far apart the worlds are, in standard deviations of the noise: what `pilots` trials in each say. ∞ if something
// without noise differs. For choosing canaries.
double separation(const Draw& draw, int64_t pilots, uint64_t seed);

}  // namespace sotto::audit

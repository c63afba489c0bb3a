// What noise costs in ε, and how much noise a budget asks for. Answers are upper bounds, rounded up.
//
//   const Steps training{.noise_multiplier = 1.0, .sampling_rate = 0.01, .count = 10000};
//   const double epsilon = epsilon_of({training}, 1e-5);
#pragma once

#include "sotto/sotto.h"

#include <cstdint>
#include <string>
#include <vector>

namespace sotto {

// Which two sets of records must be hard to tell apart.
enum class Adjacency {
  kAddRemove,        // one record more or less: even how many there are is a secret
  kZeroOut,          // one record is blank and adds nothing; how many slots there are is public
  kReplace,          // one record becomes any other
  kReplaceSameLabel  // one record becomes another of its class; how many each class has is public
};

enum class Mechanism {
  kGaussian,         // noise_multiplier is standard deviation / sensitivity
  kLaplace,          // noise_multiplier is scale / sensitivity
  kDiscreteGaussian  // integers; noise_multiplier is the standard deviation, and one integer moves by 1
};

// `count` randomised steps of one kind, chosen adaptively.
struct Steps {
  Mechanism mechanism = Mechanism::kGaussian;
  double noise_multiplier = 0;  // noise / sensitivity under `adjacency`
  double sampling_rate = 1;     // Poisson: every record takes part in a step with this probability
  int64_t batches = 1;          // random allocation: a step is an epoch, and a record is in one of its batches
  Adjacency adjacency = Adjacency::kAddRemove;
  int64_t count = 1;
};

// The least ε that is certified at `delta`, for steps of several kinds one after the other. `method` is one of those of
// `sotto account`: exact, pld, rdp, …; "": exact where there is a closed form, otherwise pld. What has no finite ε, or
// what the method does not cover, is an Error that says why.
SOTTO_API double epsilon_of(const std::vector<Steps>& steps, double delta, const std::string& method = "");
// The least δ that is certified at `epsilon`.
SOTTO_API double delta_of(const std::vector<Steps>& steps, double epsilon, const std::string& method = "");

// The least noise multiplier with which steps like these (whatever theirs is) and the others are (ε, δ) together. An
// Error says why if there is none.
SOTTO_API double calibrate(double epsilon, double delta, const Steps& steps, const std::vector<Steps>& others = {},
                           const std::string& method = "");

}  // namespace sotto

// What an accountant knows of a randomised step: the mechanism, its noise in units of its sensitivity, and how the
// records it touches were sampled.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sotto::privacy {

// Which two sets of records must be hard to tell apart. Text names: add-remove, zero-out, replace, replace-same-label.
enum class Adjacency {
  kAddRemove,        // one record more or less: even how many there are is a secret
  kZeroOut,          // one record is blank and adds nothing; how many slots there are is public
  kReplace,          // one record becomes any other
  kReplaceSameLabel  // one record becomes another of its class; how many each class has is public
};

// Whether a record that differs adds something in one world and nothing in the other. Sums of bounded values then move
// by the bound, otherwise by twice that.
constexpr bool is_one_sided(Adjacency adjacency) {
  return adjacency == Adjacency::kAddRemove || adjacency == Adjacency::kZeroOut;
}

std::string_view to_text(Adjacency adjacency);
// An unknown name is a UserError that lists the known ones.
Adjacency adjacency_from_text(std::string_view name);

struct Step {
  enum class Kind {
    kGaussian,          // noise_multiplier = stddev / Δ₂
    kLaplace,           // noise_multiplier = scale b / Δ₁
    kPure,              // (epsilon, 0) and nothing else is known: randomised response is the worst case
    kApproximate,       // (epsilon, delta): with probability delta everything is revealed
    kDiscreteGaussian,  // integers; noise_multiplier = σ, and one integer moves by 1 (several: as many steps)
    kBoundedRange,      // privacy losses lie in an interval of length epsilon: the exponential mechanism
    // A Gaussian of a cohort of fixed size, drawn without replacement: sampling_rate is the share of all that it holds,
    // noise_multiplier is stddev / Δ₂, Δ₂ being what one of its members moves.
    kCohortGaussian,
  };

  Kind kind = Kind::kGaussian;
  double noise_multiplier = 0;  // noise / sensitivity under `adjacency`
  double epsilon = 0;
  double delta = 0;
  double sampling_rate = 1;  // Poisson: every record takes part with this probability, independently
  Adjacency adjacency = Adjacency::kAddRemove;
  // Random allocation: every record is in one of this many batches, drawn uniformly and secretly; one step is one epoch
  // of them, with `noise_multiplier` in every batch.
  int64_t batches = 1;

  bool operator==(const Step&) const = default;

  static Step gaussian(double noise_multiplier, double sampling_rate = 1, Adjacency adjacency = Adjacency::kAddRemove);
  static Step laplace(double noise_multiplier, double sampling_rate = 1, Adjacency adjacency = Adjacency::kAddRemove);
  static Step pure(double epsilon, double sampling_rate = 1, Adjacency adjacency = Adjacency::kAddRemove);
  static Step approximate(double epsilon, double delta, double sampling_rate = 1,
                          Adjacency adjacency = Adjacency::kAddRemove);
  static Step discrete_gaussian(double stddev, Adjacency adjacency = Adjacency::kAddRemove);
  static Step bounded_range(double epsilon, double sampling_rate = 1, Adjacency adjacency = Adjacency::kAddRemove);
  static Step cohort(double noise_multiplier, double sampling_rate, Adjacency adjacency = Adjacency::kAddRemove);
  static Step allocated(double noise_multiplier, int64_t batches, Adjacency adjacency = Adjacency::kAddRemove);

  bool sampled() const { return sampling_rate < 1; }
  bool allocated() const { return batches > 1; }
  // Whether chance decides where a record takes part: such steps speak of their adjacency.
  bool amplified() const { return sampled() || allocated(); }
  // The same if everybody knew who takes part: an upper bound, for accountants that know no better.
  Step in_public() const;
};

std::string_view to_text(Step::Kind kind);
Step::Kind mechanism_from_text(std::string_view name);

// `count` steps of one kind, adaptively composed with others.
struct Steps {
  Step step;
  int64_t count = 1;

  bool operator==(const Steps&) const = default;
};

// A UserError with one reason unless every parameter is finite and in its range, counts are not negative, and all
// amplified steps speak of one adjacency. Random allocation is for Gaussians, and is not sampled as well. Discrete Gaussians have a σ between 1e-3 and 1e5 and are not sampled.
void require_valid(std::span<const Steps> steps);

// Whether discrete Gaussian noise of this σ has a privacy-loss distribution of a size that is computed.
bool is_discrete_gaussian_stddev(double stddev);

// 0 < delta < 1, or a UserError.
void require_valid_delta(double delta);
// 0 ≤ epsilon < ∞, or a UserError.
void require_valid_epsilon(double epsilon);

// The same composition with equal steps counted together and without those of count 0.
std::vector<Steps> merged(std::span<const Steps> steps);

int64_t total_count(std::span<const Steps> steps);

// The largest privacy loss of one step, ∞ if it has none; the mass `delta` of an approximate step is not counted.
double largest_loss(const Step& step);

}  // namespace sotto::privacy

#include "privacy/accounting/step.h"

#include "base/error.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace sotto::privacy {
namespace {

constexpr int64_t kMostSteps = 1'000'000'000'000;
constexpr int64_t kMostBatches = 1'000'000;
constexpr double kLeastNoise = 1e-6;
constexpr double kLeastRate = 1e-12;

void require_valid(const Step& step) {
  using Kind = Step::Kind;
  if (step.kind == Kind::kGaussian || step.kind == Kind::kLaplace || step.kind == Kind::kCohortGaussian) {
    if (!(std::isfinite(step.noise_multiplier) && step.noise_multiplier > 0)) {
      fail_user("the noise multiplier must be a finite number above 0, not {}", step.noise_multiplier);
    }
    if (step.noise_multiplier < kLeastNoise) {
      fail_user("a noise multiplier of {} hides nothing: it must be at least {}", step.noise_multiplier, kLeastNoise);
    }
  } else if (step.kind == Kind::kDiscreteGaussian) {
    if (!is_discrete_gaussian_stddev(step.noise_multiplier)) {
      fail_user("the standard deviation of discrete gaussian noise must be between 0.001 and 100000, not {}",
                step.noise_multiplier);
    }
    if (step.sampled()) fail_user("discrete gaussian noise is accounted for without sampling only");
  } else if (!(std::isfinite(step.epsilon) && step.epsilon > 0)) {
    fail_user("epsilon of a {} step must be a finite number above 0, not {}", to_text(step.kind), step.epsilon);
  } else if (step.epsilon > 1 / kLeastNoise) {
    fail_user("a step of epsilon {} hides nothing: it must be at most {}", step.epsilon, 1 / kLeastNoise);
  }
  if (step.kind == Kind::kApproximate && !(step.delta >= 0 && step.delta < 1)) {
    fail_user("delta of an approximate step must be at least 0 and below 1, not {}", step.delta);
  }
  if (!(step.sampling_rate > 0 && step.sampling_rate <= 1)) {
    fail_user("the sampling rate must be above 0 and at most 1, not {}", step.sampling_rate);
  }
  if (step.sampling_rate < kLeastRate) {
    fail_user("the sampling rate must be at least {}, not {}: give the number of records that can really take part",
              kLeastRate, step.sampling_rate);
  }
  if (step.batches < 1 || step.batches > kMostBatches) {
    fail_user("the number of batches must be between 1 and 10^6, not {}", step.batches);
  }
  if (!step.allocated()) return;
  if (step.kind != Kind::kGaussian) {
    fail_user("random allocation is accounted for with gaussian noise only, not for a {} step", to_text(step.kind));
  }
  if (step.sampled()) fail_user("records are either sampled at a rate or allocated to batches, not both");
}

}  // namespace

std::string_view to_text(Adjacency adjacency) {
  switch (adjacency) {
    case Adjacency::kAddRemove:
      return "add-remove";
    case Adjacency::kZeroOut:
      return "zero-out";
    case Adjacency::kReplace:
      return "replace";
    case Adjacency::kReplaceSameLabel:
      return "replace-same-label";
  }
  return "";
}

Adjacency adjacency_from_text(std::string_view name) {
  for (const Adjacency adjacency :
       {Adjacency::kAddRemove, Adjacency::kZeroOut, Adjacency::kReplace, Adjacency::kReplaceSameLabel}) {
    if (to_text(adjacency) == name) return adjacency;
  }
  fail_user("there is no adjacency '{}': it is add-remove, zero-out, replace or replace-same-label", name);
}

std::string_view to_text(Step::Kind kind) {
  switch (kind) {
    case Step::Kind::kGaussian:
      return "gaussian";
    case Step::Kind::kLaplace:
      return "laplace";
    case Step::Kind::kPure:
      return "pure";
    case Step::Kind::kApproximate:
      return "approximate";
    case Step::Kind::kDiscreteGaussian:
      return "discrete-gaussian";
    case Step::Kind::kBoundedRange:
      return "bounded-range";
    case Step::Kind::kCohortGaussian:
      return "cohort-gaussian";
  }
  return "";
}

Step::Kind mechanism_from_text(std::string_view name) {
  using Kind = Step::Kind;
  for (const Kind kind : {Kind::kGaussian, Kind::kLaplace, Kind::kPure, Kind::kApproximate, Kind::kDiscreteGaussian,
                          Kind::kBoundedRange, Kind::kCohortGaussian}) {
    if (to_text(kind) == name) return kind;
  }
  fail_user(
      "there is no mechanism '{}': it is gaussian, laplace, pure, approximate, discrete-gaussian, bounded-range or "
      "cohort-gaussian",
      name);
}

Step Step::gaussian(double noise_multiplier, double sampling_rate, Adjacency adjacency) {
  return {Kind::kGaussian, noise_multiplier, 0, 0, sampling_rate, adjacency, 1};
}

Step Step::laplace(double noise_multiplier, double sampling_rate, Adjacency adjacency) {
  return {Kind::kLaplace, noise_multiplier, 0, 0, sampling_rate, adjacency, 1};
}

Step Step::pure(double epsilon, double sampling_rate, Adjacency adjacency) {
  return {Kind::kPure, 0, epsilon, 0, sampling_rate, adjacency, 1};
}

Step Step::approximate(double epsilon, double delta, double sampling_rate, Adjacency adjacency) {
  return {Kind::kApproximate, 0, epsilon, delta, sampling_rate, adjacency, 1};
}

Step Step::discrete_gaussian(double stddev, Adjacency adjacency) {
  return {Kind::kDiscreteGaussian, stddev, 0, 0, 1, adjacency, 1};
}

Step Step::bounded_range(double epsilon, double sampling_rate, Adjacency adjacency) {
  return {Kind::kBoundedRange, 0, epsilon, 0, sampling_rate, adjacency, 1};
}

Step Step::cohort(double noise_multiplier, double sampling_rate, Adjacency adjacency) {
  return {Kind::kCohortGaussian, noise_multiplier, 0, 0, sampling_rate, adjacency, 1};
}

Step Step::in_public() const {
  Step step = *this;
  step.batches = 1;
  if (kind != Kind::kCohortGaussian) return step;
  step.kind = Kind::kGaussian;
  step.sampling_rate = 1;
  return step;
}

Step Step::allocated(double noise_multiplier, int64_t batches, Adjacency adjacency) {
  return {Kind::kGaussian, noise_multiplier, 0, 0, 1, adjacency, batches};
}

void require_valid(std::span<const Steps> steps) {
  const Step* amplified = nullptr;
  for (const Steps& entry : steps) {
    require_valid(entry.step);
    if (entry.count < 0 || entry.count > kMostSteps) {
      fail_user("the number of steps must be between 0 and 10^12, not {}", entry.count);
    }
    if (!entry.step.amplified()) continue;
    if (amplified != nullptr && amplified->adjacency != entry.step.adjacency) {
      fail_user("sampled steps under {} and under {} do not compose: state one adjacency",
                to_text(amplified->adjacency), to_text(entry.step.adjacency));
    }
    amplified = &entry.step;
  }
}

void require_valid_delta(double delta) {
  if (!(delta > 0 && delta < 1)) fail_user("delta must be above 0 and below 1, not {}", delta);
}

void require_valid_epsilon(double epsilon) {
  if (!(std::isfinite(epsilon) && epsilon >= 0))
    fail_user("epsilon must be a finite number, 0 or more, not {}", epsilon);
}

std::vector<Steps> merged(std::span<const Steps> steps) {
  std::vector<Steps> result;
  for (const Steps& entry : steps) {
    if (entry.count == 0) continue;
    const auto same = std::find_if(result.begin(), result.end(), [&](const Steps& s) { return s.step == entry.step; });
    if (same == result.end()) {
      result.push_back(entry);
    } else {
      same->count += entry.count;
    }
  }
  return result;
}

int64_t total_count(std::span<const Steps> steps) {
  int64_t total = 0;
  for (const Steps& entry : steps) total += entry.count;
  return total;
}

bool is_discrete_gaussian_stddev(double stddev) {
  return stddev >= 1e-3 && stddev <= 1e5;
}

double largest_loss(const Step& step) {
  double base = std::numeric_limits<double>::infinity();
  if (step.kind == Step::Kind::kLaplace) base = 1 / step.noise_multiplier;
  if (step.kind == Step::Kind::kPure || step.kind == Step::Kind::kApproximate ||
      step.kind == Step::Kind::kBoundedRange) {
    base = step.epsilon;
  }
  const double q = step.sampling_rate;
  if (q == 1 || std::isinf(base)) return base;
  return base < 1 ? std::log1p(q * std::expm1(base)) : base + std::log(q + (1 - q) * std::exp(-base));
}

}  // namespace sotto::privacy

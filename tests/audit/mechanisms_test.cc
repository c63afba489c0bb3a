// Mechanisms keep their promises, and ones that are broken on purpose are found out.
#include "audit/mechanisms.h"

#include "base/parallel.h"
#include "base/random.h"
#include "privacy/accounting/gaussian.h"
#include "privacy/bounded.h"
#include "privacy/ledger.h"
#include "privacy/mechanisms/gaussian.h"

#include <ATen/ATen.h>

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>

namespace sotto::audit {
namespace {

constexpr double kDelta = 1e-5;

class Sound : public ::testing::TestWithParam<std::string> {};

TEST_P(Sound, KeepsItsPromise) {
  for (const double epsilon : {1.0, 6.0}) {
    const Case subject = find_mechanism_audit(GetParam()).at(epsilon, kDelta);
    EXPECT_GT(subject.proven, 0.8 * epsilon) << "the audit is of what was asked for";
    // The smaller ε is, the more trials it takes to see anything of it.
    const int64_t trials = epsilon < 2 ? 20000 : 4000;
    const Outcome outcome = audit(subject, {.trials = trials, .threads = available_threads()});
    EXPECT_EQ(outcome.verdict(), Verdict::kConsistent) << outcome.epsilon() << " of " << subject.proven;
    EXPECT_GT(outcome.epsilon(), 0.3 * epsilon) << GetParam() << ": an audit that never comes near is blind";
    RecordProperty("audited", std::to_string(outcome.epsilon()));
  }
}

INSTANTIATE_TEST_SUITE_P(All, Sound,
                         ::testing::Values("gaussian", "groupwise-gaussian", "whole-update-gaussian", "laplace"),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::erase(name, '-');
                           return name;
                         });

// Their worst pairs do not reach ε: a set says less than its scores, and a count is one number of many.
TEST(SoundButLoose, TopKAndCounts) {
  for (const char* name : {"laplace-top-k", "gumbel-top-k", "discrete-gaussian", "released-evaluation"}) {
    const Outcome outcome = audit(find_mechanism_audit(name).at(4, kDelta), {.trials = 6000, .threads = 2});
    EXPECT_EQ(outcome.verdict(), Verdict::kConsistent) << name;
    EXPECT_GT(outcome.epsilon(), 0.5) << name;
  }
}

TEST(Speed, AHundredThousandTrialsEndWithinAMinute) {
  const Outcome outcome =
      audit(find_mechanism_audit("gaussian").at(1, kDelta), {.trials = 20000, .threads = available_threads()});
  EXPECT_EQ(outcome.finding.bounds.trials, 40000);
  EXPECT_LT(outcome.seconds, 60 * 0.4);
  EXPECT_GT(outcome.epsilon(), 0.6);
  RecordProperty("seconds", std::to_string(outcome.seconds));
}

TEST(Cases, ResultsDoNotDependOnTheNumberOfThreads) {
  const Case subject = find_mechanism_audit("gaussian").at(2, kDelta);
  const Outcome one = audit(subject, {.trials = 1000, .threads = 1}),
                two = audit(subject, {.trials = 1000, .threads = 2});
  EXPECT_EQ(one.finding.bounds.epsilon, two.finding.bounds.epsilon);
  EXPECT_EQ(one.finding.bounds.mu, two.finding.bounds.mu);
}

// ---- mechanisms that are broken on purpose: each claims ε = 1 ----

constexpr double kClip = 1.0;
constexpr int64_t kBatch = 16;
const double kMu = privacy::gaussian_mu(1.0, kDelta);

using Broken = std::function<at::Tensor(World world, privacy::NoiseSource& source)>;

void add_noise(at::Tensor& values, double stddev, privacy::NoiseSource& source) {
  privacy::add_gaussian(std::span(values.data_ptr<double>(), static_cast<size_t>(values.numel())), stddev, kClip,
                        source);
}

Case broken(const Broken& mechanism) {
  return {.name = "broken",
          .what = "",
          .delta = kDelta,
          .claimed = 1.0,
          .proven = std::numeric_limits<double>::infinity(),
          .gaussian = true,
          .make_draw = [=]() -> Draw {
            return [=](World world, uint64_t seed) {
              privacy::NoiseSource source = privacy::NoiseSource::replay(seed, "broken", 0, 0);
              NamedTensors seen;
              seen.push_back({"value", mechanism(world, source)});
              return seen;
            };
          }};
}

// The sum of a batch in which one record is +Cv or -Cv; the others are zero.
at::Tensor clipped_sum(World world) {
  return at::full({4}, (world == World::kWith ? kClip : -kClip) / 2, at::kDouble);
}

Outcome flagged(const Broken& mechanism) {
  return audit(broken(mechanism), {.trials = 10000, .threads = 2});
}

TEST(Broken, TheSameWithoutTheFaultPasses) {
  const Outcome outcome = flagged([](World world, privacy::NoiseSource& source) {
    at::Tensor sum = clipped_sum(world);
    add_noise(sum, 2 * kClip / kMu, source);
    return sum;
  });
  EXPECT_EQ(outcome.verdict(), Verdict::kConsistent) << outcome.epsilon();
  EXPECT_GT(outcome.epsilon(), 0.4);
}

TEST(Broken, NoiseHalved) {
  const Outcome outcome = flagged([](World world, privacy::NoiseSource& source) {
    at::Tensor sum = clipped_sum(world);
    add_noise(sum, kClip / kMu, source);
    return sum;
  });
  EXPECT_EQ(outcome.verdict(), Verdict::kRefuted) << outcome.epsilon();
}

TEST(Broken, ClipAfterNoise) {
  const Outcome outcome = flagged([](World world, privacy::NoiseSource& source) {
    at::Tensor sum = 100 * clipped_sum(world);
    add_noise(sum, 2 * kClip / kMu, source);
    return sum / std::max(1.0, sum.norm().item<double>() / kClip);
  });
  EXPECT_EQ(outcome.verdict(), Verdict::kRefuted) << outcome.epsilon();
}

TEST(Broken, SeedReusedInTwoReleases) {
  const Outcome outcome = flagged([](World world, privacy::NoiseSource& source) {
    const uint64_t seed = source.bits();
    at::Tensor releases = at::stack({clipped_sum(world), at::zeros({4}, at::kDouble)});
    for (int64_t i = 0; i < 2; ++i) {
      at::Tensor release = releases[i];
      privacy::NoiseSource again = privacy::NoiseSource::replay(seed, "reused", 0, 0);
      add_noise(release, 2 * kClip / kMu, again);
    }
    return releases[0] - releases[1];  // anyone can compute it
  });
  EXPECT_EQ(outcome.verdict(), Verdict::kRefuted) << outcome.epsilon();
  EXPECT_EQ(outcome.finding.statistic, "equality");
}

TEST(Broken, SeedReusedInEveryTrial) {
  const Outcome outcome = flagged([](World world, privacy::NoiseSource&) {
    at::Tensor sum = clipped_sum(world);
    privacy::NoiseSource fixed = privacy::NoiseSource::replay(7, "fixed", 0, 0);
    add_noise(sum, 2 * kClip / kMu, fixed);
    return sum;
  });
  EXPECT_EQ(outcome.verdict(), Verdict::kRefuted) << outcome.epsilon();
}

TEST(Broken, SensitivityOfAClippedBatchTakenAsCOverB) {
  // The batch's mean gradient is clipped as a whole, and noised as if each record had been.
  const Outcome outcome = flagged([](World world, privacy::NoiseSource& source) {
    at::Tensor mean = clipped_sum(world) * 1e4 / kBatch;
    mean /= std::max(1.0, mean.norm().item<double>() / kClip);
    add_noise(mean, kClip / kBatch / kMu, source);
    return mean;
  });
  EXPECT_EQ(outcome.verdict(), Verdict::kRefuted) << outcome.epsilon();
  EXPECT_GT(outcome.epsilon(), 5);
}

TEST(Broken, SensitivityOfAReplacedRecordTakenAsCOverB) {
  const Outcome outcome = flagged([](World world, privacy::NoiseSource& source) {
    at::Tensor mean = clipped_sum(world) / kBatch;
    add_noise(mean, kClip / kBatch / kMu, source);
    return mean;
  });
  EXPECT_EQ(outcome.verdict(), Verdict::kRefuted) << outcome.epsilon();
}

TEST(Broken, CountLeaked) {
  // A mean over a private number of records; only its sum was noised.
  const Outcome outcome = flagged([](World world, privacy::NoiseSource& source) {
    const double count = world == World::kWith ? kBatch : kBatch - 1;
    at::Tensor sum = at::zeros({4}, at::kDouble);
    add_noise(sum, 2 * kClip / kMu, source);
    return at::cat({sum / count, at::full({1}, count, at::kDouble)});
  });
  EXPECT_EQ(outcome.verdict(), Verdict::kRefuted) << outcome.epsilon();
}

TEST(Broken, ScaleThatDependsOnACount) {
  const Outcome outcome = flagged([](World world, privacy::NoiseSource& source) {
    const double count = world == World::kWith ? 10 : 9;
    at::Tensor mean = at::zeros({512}, at::kDouble);
    add_noise(mean, 2 * kClip / kMu / count, source);
    return mean;
  });
  EXPECT_EQ(outcome.verdict(), Verdict::kRefuted) << outcome.epsilon();
  EXPECT_EQ(outcome.finding.statistic, "likelihood");
}

TEST(Broken, WhatIsReleasedDependsOnTheRecord) {
  Case subject = broken({});
  subject.make_draw = []() -> Draw {
    return [](World world, uint64_t seed) {
      NamedTensors seen;
      at::Tensor noisy = at::zeros({2}, at::kDouble);
      privacy::NoiseSource source = privacy::NoiseSource::replay(seed, "broken", 0, 0);
      add_noise(noisy, 100, source);
      seen.push_back({"class 0", noisy});
      if (world == World::kWith) seen.push_back({"class 1", noisy});
      return seen;
    };
  };
  EXPECT_EQ(audit(subject, {.trials = 2000}).verdict(), Verdict::kRefuted);
}

// What is released is a linear map of three noisy numbers, the last of which tells the worlds apart by 3 standard
// deviations and hardly shows among the others.
TEST(TwoWorlds, NoiseBehindALinearMapIsSeenThrough) {
  constexpr double mu = 3;
  at::Generator map_generator = RandomStream(1, "map").torch_generator();
  const at::Tensor scales = at::tensor({1.0, 0.3, 0.05});
  const at::Tensor map = at::empty({12, 3}, at::kDouble).normal_(0, 1, map_generator) * scales;
  const MakeDraw make = [&]() -> Draw {
    return [&](World world, uint64_t seed) {
      at::Generator generator = RandomStream(seed, "noise").torch_generator();
      at::Tensor numbers = at::empty({3}, at::kDouble).normal_(0, 1, generator);
      if (world == World::kWith) numbers[2] += mu;
      NamedTensors seen;
      seen.push_back({"mapped", map.mv(numbers)});
      return seen;
    };
  };
  const Finding finding = tell_apart(make, {.trials = 2000});
  EXPECT_EQ(finding.statistic, "confined");
  EXPECT_GT(finding.bounds.mu, 0.8 * mu);
  EXPECT_LT(finding.bounds.mu, mu);
}

}  // namespace
}  // namespace sotto::audit

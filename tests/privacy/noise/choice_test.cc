#include "privacy/noise/choice.h"

#include "base/error.h"
#include "goodness.h"
#include "privacy/noise/uniform.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

namespace sotto::privacy {
namespace {

constexpr int kDraws = 60000;

NoiseSource source_named(const char* purpose) {
  return NoiseSource::replay(8, purpose, 0, 0);
}

// Probabilities of all ordered picks, by the definition.
void add_laws(const std::vector<uint64_t>& scores, double scale, int64_t left, const std::vector<int64_t>& picked,
              double mass, std::map<std::vector<int64_t>, double>& laws) {
  if (left == 0) {
    laws[picked] = mass;
    return;
  }
  const auto weight = [&](size_t i) {
    const bool taken = std::find(picked.begin(), picked.end(), static_cast<int64_t>(i)) != picked.end();
    return taken ? 0.0 : std::exp(static_cast<double>(scores[i]) / scale);
  };
  double total = 0;
  for (size_t i = 0; i < scores.size(); ++i) total += weight(i);
  for (size_t i = 0; i < scores.size(); ++i) {
    if (weight(i) == 0) continue;
    std::vector<int64_t> next = picked;
    next.push_back(static_cast<int64_t>(i));
    add_laws(scores, scale, left - 1, next, mass * weight(i) / total, laws);
  }
}

// How plausible the draws with `scale` are as draws with `law_scale`.
double picks_p(const std::vector<uint64_t>& scores, uint64_t scale, double law_scale, int64_t count) {
  std::map<std::vector<int64_t>, double> laws;
  add_laws(scores, law_scale, count, {}, 1, laws);
  std::map<std::vector<int64_t>, double> counts;
  NoiseSource source = source_named("picks");
  for (int i = 0; i < kDraws; ++i) counts[exponential_picks(scores, scale, count, source)] += 1;
  std::vector<double> seen;
  std::vector<double> due;
  for (const auto& [picked, mass] : laws) {
    seen.push_back(counts[picked]);
    due.push_back(mass * kDraws);
  }
  return chi_square_p(seen, due);
}

TEST(ExponentialPicks, HaveTheLawOfTheExponentialMechanism) {
  const std::vector<uint64_t> scores = {0, 5, 9, 10, 3};
  for (const uint64_t scale : {2, 7, 30, 1000}) {
    for (const int64_t count : {1, 2, 3}) {
      EXPECT_GT(picks_p(scores, scale, static_cast<double>(scale), count), kPlausible) << scale << " " << count;
    }
  }
}

TEST(ExponentialPicks, AnotherScaleIsNoticed) {
  EXPECT_LT(picks_p({0, 5, 9, 10, 3}, 7, 7.5, 1), kRefuted);
  EXPECT_LT(picks_p({0, 5, 9, 10, 3}, 7, 7.5, 2), kRefuted);
}

// What adding Gumbel noise and taking the largest gives.
TEST(ExponentialPicks, AreTheLargestScoresWithGumbelNoise) {
  const std::vector<uint64_t> scores = {0, 6, 10};
  std::map<std::vector<int64_t>, double> laws;
  add_laws(scores, 8, 2, {}, 1, laws);
  std::map<std::vector<int64_t>, double> counts;
  NoiseSource source = source_named("gumbel");
  for (int i = 0; i < kDraws; ++i) {
    std::vector<double> noisy;
    for (const uint64_t score : scores) {
      const double uniform = (static_cast<double>(source.bits() >> 11) + 0.5) * 0x1p-53;
      noisy.push_back(static_cast<double>(score) - 8 * std::log(-std::log(uniform)));
    }
    std::vector<int64_t> order = {0, 1, 2};
    std::sort(order.begin(), order.end(),
              [&](int64_t a, int64_t b) { return noisy[static_cast<size_t>(a)] > noisy[static_cast<size_t>(b)]; });
    order.pop_back();
    counts[order] += 1;
  }
  std::vector<double> seen;
  std::vector<double> due;
  for (const auto& [picked, mass] : laws) {
    seen.push_back(counts[picked]);
    due.push_back(mass * kDraws);
  }
  EXPECT_GT(chi_square_p(seen, due), kPlausible);
}

TEST(ExponentialPicks, AreDifferentAndAsManyAsAsked) {
  NoiseSource source = source_named("distinct");
  std::vector<uint64_t> scores(200);
  for (size_t i = 0; i < scores.size(); ++i) scores[i] = i * 977 % 1024;
  for (const int64_t count : {0, 1, 50, 200}) {
    const auto picked = exponential_picks(scores, 100, count, source);
    EXPECT_EQ(std::set<int64_t>(picked.begin(), picked.end()).size(), static_cast<size_t>(count));
    for (const int64_t i : picked) EXPECT_TRUE(i >= 0 && i < 200);
  }
}

TEST(ExponentialPicks, ATinyScaleTakesTheLargestInOrder) {
  NoiseSource source = source_named("tiny");
  const std::vector<uint64_t> scores = {1'000'000, 0, 3'000'000, 2'000'000};
  EXPECT_EQ(exponential_picks(scores, 1, 4, source), (std::vector<int64_t>{2, 3, 0, 1}));
}

TEST(BernoulliExpMinus, OfARatioHasItsProbability) {
  NoiseSource source = source_named("ratio");
  for (const auto& [numerator, denominator] :
       {std::pair<uint64_t, uint64_t>{0, 3}, {1, 3}, {3, 3}, {5, 2}, {uint64_t{1} << 40, uint64_t{1} << 41}}) {
    double hits = 0;
    for (int i = 0; i < kDraws; ++i) hits += bernoulli_exp_minus(numerator, denominator, source) ? 1 : 0;
    const double due = std::exp(-static_cast<double>(numerator) / static_cast<double>(denominator));
    EXPECT_NEAR(hits / kDraws, due, 5 * std::sqrt(due * (1 - due) / kDraws) + 1e-12);
  }
}

}  // namespace
}  // namespace sotto::privacy

#include "privacy/dpsgd/samplers.h"

#include "../../support/expect_user_error.h"

#include <ATen/ATen.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace sotto::privacy {
namespace {

std::vector<int64_t> all_of(const std::vector<at::Tensor>& batches) {
  std::vector<int64_t> found;
  for (const at::Tensor& batch : batches)
    found.insert(found.end(), batch.data_ptr<int64_t>(), batch.data_ptr<int64_t>() + batch.numel());
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<int64_t> counted(int64_t n) {
  std::vector<int64_t> values(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) values[static_cast<size_t>(i)] = i;
  return values;
}

TEST(Samplers, PoissonTakesEveryRecordAtTheRateAndIndependently) {
  NoiseSource stream = NoiseSource::replay(5, "poisson", 0, 0);
  constexpr int64_t kRecords = 40, kSteps = 20000;
  constexpr double kRate = 0.15;
  at::Tensor counts = at::zeros({kRecords}, at::kDouble), sizes = at::zeros({kSteps}, at::kDouble);
  for (int64_t step = 0; step < kSteps; ++step) {
    const at::Tensor batch = poisson_batch(kRecords, kRate, stream);
    counts.index_add_(0, batch, at::ones({batch.size(0)}, at::kDouble));
    sizes[step] = batch.size(0);
  }
  const double spread = std::sqrt(kRate * (1 - kRate) / kSteps);
  EXPECT_LT((counts / kSteps - kRate).abs().max().item<double>(), 5 * spread);
  // The variance of the size is the sum of the records' only if they are independent.
  EXPECT_NEAR(sizes.var().item<double>(), kRecords * kRate * (1 - kRate), 0.2);
  EXPECT_EQ(sizes.min().item<double>(), 0.0) << "empty batches occur";
}

TEST(Samplers, PoissonTakesEveryRecordAtItsOwnRate) {
  NoiseSource stream = NoiseSource::replay(5, "poisson", 0, 0);
  constexpr int64_t kSteps = 20000;
  const std::vector<double> rates = {0.001, 0.3, 0.02, 1.0, 0.7, 0.3};
  const at::Tensor expected = at::tensor(rates, at::kDouble);
  at::Tensor counts = at::zeros_like(expected);
  at::Tensor together = at::zeros({}, at::kDouble);
  for (int64_t step = 0; step < kSteps; ++step) {
    at::Tensor taken = at::zeros_like(expected);
    taken.index_fill_(0, poisson_batch(rates, stream), 1.0);
    counts += taken;
    together += taken[1] * taken[5];
  }
  const at::Tensor spread = (expected * (1 - expected) / kSteps).sqrt();
  EXPECT_TRUE(((counts / kSteps - expected).abs() <= 5 * spread).all().item<bool>()) << counts;
  EXPECT_NEAR(together.item<double>() / kSteps, 0.09, 5 * std::sqrt(0.09 * 0.91 / kSteps)) << "independently";
  EXPECT_EQ(poisson_batch(std::vector<double>{}, stream).numel(), 0);
  for (const double rate : {0.0, -0.1, 1.1, std::nan("")}) {
    EXPECT_THROW(poisson_batch(std::vector<double>{0.5, rate}, stream), UserError);
  }
}

// One rate for all is the same draw as that rate for each.
TEST(Samplers, EqualRatesAreOneRate) {
  NoiseSource one = NoiseSource::replay(5, "poisson", 0, 0), each = NoiseSource::replay(5, "poisson", 0, 0);
  for (int step = 0; step < 50; ++step) {
    EXPECT_TRUE(at::equal(poisson_batch(30, 0.2, one), poisson_batch(std::vector<double>(30, 0.2), each)));
  }
}

TEST(Samplers, PoissonAtRateOneTakesAll) {
  NoiseSource stream = NoiseSource::replay(5, "poisson", 0, 0);
  EXPECT_EQ(all_of({poisson_batch(17, 1.0, stream)}), counted(17));
  EXPECT_EQ(poisson_batch(0, 0.5, stream).numel(), 0);
}

TEST(Samplers, SlicesCoverEveryRecordOnce) {
  RandomStream stream(1, "slices");
  const auto batches = sliced_epoch(23, 5, stream);
  ASSERT_EQ(batches.size(), 5u);
  EXPECT_EQ(batches.back().numel(), 3);
  EXPECT_EQ(all_of(batches), counted(23));
  EXPECT_NE(all_of({batches[0]}), counted(5)) << "not shuffled";
}

TEST(Samplers, ScatteredBatchesCoverEveryRecordOnceWhateverTheCount) {
  for (const int64_t records : {0, 1, 3, 50}) {
    NoiseSource secret = NoiseSource::replay(2, "scatter", 0, 0);
    const auto batches = scattered_epoch(records, 7, secret);
    EXPECT_EQ(batches.size(), 7u);
    EXPECT_EQ(all_of(batches), counted(records));
  }
}

TEST(Samplers, OneRecordLessLeavesTheOthersWhereTheyAre) {
  NoiseSource with = NoiseSource::replay(3, "scatter", 0, 0), without = NoiseSource::replay(3, "scatter", 0, 0);
  const auto full = scattered_epoch(60, 8, with), less = scattered_epoch(59, 8, without);
  for (size_t i = 0; i < full.size(); ++i) {
    EXPECT_EQ(all_of({full[i].masked_select(full[i].ne(59))}), all_of({less[i]}));
  }
}

TEST(Samplers, ScatteredBatchesAreUniform) {
  NoiseSource secret = NoiseSource::replay(4, "scatter", 0, 0);
  constexpr int64_t kRecords = 70000, kBatches = 7;
  double chi_square = 0.0;
  for (const auto& batch : scattered_epoch(kRecords, kBatches, secret)) {
    const double expected = static_cast<double>(kRecords) / kBatches;
    chi_square += std::pow(static_cast<double>(batch.numel()) - expected, 2) / expected;
  }
  EXPECT_LT(chi_square, 22.5) << "six degrees of freedom: 22.46 is exceeded once in a thousand";
}

TEST(Samplers, ImpossibleConstantsAreRefused) {
  RandomStream stream(1, "bad");
  NoiseSource secret = NoiseSource::replay(1, "bad", 0, 0);
  for (const double rate : {0.0, -0.1, 1.1, std::nan("")}) EXPECT_THROW(poisson_batch(3, rate, secret), UserError);
  EXPECT_THROW(sliced_epoch(3, 0, stream), UserError);
  EXPECT_THROW(scattered_epoch(3, 0, secret), UserError);
  EXPECT_THROW(scattered_epoch(-1, 2, secret), UserError);
}

// Where a record stands in its batch must not follow from where it stands in the shard: passes have fixed slots.
TEST(Samplers, BatchesAreInRandomOrder) {
  constexpr int kRounds = 3000;
  NoiseSource secret = NoiseSource::replay(5, "order", 0, 0);
  std::vector<int> first(4, 0);
  for (int i = 0; i < kRounds; ++i) {
    ++first[static_cast<size_t>(poisson_batch(4, 1.0, secret)[0].item<int64_t>())];
    ++first[static_cast<size_t>(scattered_epoch(4, 1, secret)[0][0].item<int64_t>())];
  }
  for (const int count : first) EXPECT_NEAR(count, kRounds / 2, 5 * std::sqrt(2 * kRounds * 0.25 * 0.75));
}

}  // namespace
}  // namespace sotto::privacy

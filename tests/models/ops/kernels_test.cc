// Every set of kernels this machine can run against the plain sums they stand for. (The operators' tests use only the
// best.)
#include "models/ops/kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace sotto::models::ops {
namespace {

std::vector<float> random_floats(int64_t count, unsigned seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = normal(engine);
  return values;
}

class KernelsTest : public testing::TestWithParam<const Kernels*> {
 protected:
  // Patches of 3 runs of 7 floats in a line of numbers, overlapping by all but 5.
  static constexpr int64_t kCount = 29;
  static constexpr int64_t kColumns = 2 * kPanel;
  static constexpr PatchShape kShape = {3, 7, 11};

  KernelsTest() {
    for (int64_t p = 0; p < kCount; ++p) patches_.push_back(line_.data() + 5 * p);
  }
  static int64_t place(int64_t k) { return k / kShape.run_length * kShape.run_stride + k % kShape.run_length; }
  static int64_t packed(int64_t k, int64_t column) {
    return (column / kPanel * kShape.depth() + k) * kPanel + column % kPanel;
  }

  std::vector<float> line_ = random_floats(5 * kCount + 40, 1);
  std::vector<const float*> patches_;
};

TEST_P(KernelsTest, MultiplyPatches) {
  const auto weights = random_floats(kShape.depth() * kColumns, 2), bias = random_floats(kColumns, 3);
  std::vector<float> out(kCount * kColumns);
  GetParam()->multiply_patches(patches_.data(), kCount, kShape, weights.data(), kColumns / kPanel, bias.data(),
                               out.data(), kColumns);
  for (int64_t p = 0; p < kCount; ++p)
    for (int64_t c = 0; c < kColumns; ++c) {
      double sum = bias[c];
      for (int64_t k = 0; k < kShape.depth(); ++k) sum += double{patches_[p][place(k)]} * weights[packed(k, c)];
      ASSERT_NEAR(out[p * kColumns + c], sum, 1e-4);
    }
}

TEST_P(KernelsTest, AccumulateWeights) {
  const auto gradient = random_floats(kCount * kColumns, 2), before = random_floats(kShape.depth() * kColumns, 3);
  auto weights = before;
  GetParam()->accumulate_weights(patches_.data(), kCount, kShape, gradient.data(), kColumns, kColumns / kPanel,
                                 weights.data());
  for (int64_t k = 0; k < kShape.depth(); ++k)
    for (int64_t c = 0; c < kColumns; ++c) {
      double sum = before[packed(k, c)];
      for (int64_t p = 0; p < kCount; ++p) sum += double{patches_[p][place(k)]} * gradient[p * kColumns + c];
      ASSERT_NEAR(weights[packed(k, c)], sum, 1e-4);
    }
}

TEST_P(KernelsTest, ScatterPatches) {
  constexpr int64_t kDepth = 9;
  const auto gradient = random_floats(kCount * kPanel, 2), weights = random_floats(kShape.runs * kDepth * kPanel, 3);
  auto line = line_;
  std::vector<double> wanted(line.begin(), line.end());
  std::vector<float*> patches;
  for (int64_t p = 0; p < kCount; ++p) patches.push_back(line.data() + 5 * p);
  GetParam()->scatter_patches(gradient.data(), kPanel, kCount, kDepth, weights.data(), kShape, patches.data());
  for (int64_t p = 0; p < kCount; ++p)
    for (int64_t run = 0; run < kShape.runs; ++run)
      for (int64_t j = 0; j < kShape.run_length; ++j)
        for (int64_t k = 0; k < kDepth; ++k)
          wanted[5 * p + run * kShape.run_stride + j] +=
              double{gradient[p * kPanel + k]} * weights[(run * kDepth + k) * kPanel + j];
  for (size_t i = 0; i < line.size(); ++i) ASSERT_NEAR(line[i], wanted[i], 1e-4) << i;
}

TEST_P(KernelsTest, SumRows) {
  const auto gradient = random_floats(kCount * kColumns, 2);
  std::vector<float> sums(kColumns, 1.0f);
  GetParam()->sum_rows(gradient.data(), kCount, kColumns, sums.data());
  for (int64_t c = 0; c < kColumns; ++c) {
    double sum = 1;
    for (int64_t p = 0; p < kCount; ++p) sum += gradient[p * kColumns + c];
    ASSERT_NEAR(sums[c], sum, 1e-4);
  }
}

// 21 channels: whole vectors of every set, and a rest.
TEST_P(KernelsTest, MaxPoolThereAndBack) {
  for (const int64_t kernel : {2, 3}) {
    for (const bool relu : {false, true}) {
      const PoolShape s = {6, 7, 7 - kernel, 8 - kernel, kernel, 1, 21, 24};
      const auto in = random_floats(s.in_size(), 4), gradient = random_floats(s.out_size(), 5);
      std::vector<float> out(s.out_size()), back(s.in_size()), wanted_back(s.in_size());
      std::vector<uint8_t> winner(s.out_size());
      GetParam()->max_pool(s, relu, in.data(), out.data(), winner.data());
      GetParam()->max_pool_backward(s, gradient.data(), winner.data(), back.data());
      for (int64_t y = 0, o = 0; y < s.out_height; ++y)
        for (int64_t x = 0; x < s.out_width; ++x)
          for (int64_t c = 0; c < s.channels; ++c, ++o) {
            int64_t best = (y * s.in_width + x) * s.in_pitch + c;
            for (int64_t tap = 0; tap < kernel * kernel; ++tap) {
              const int64_t place = ((y + tap / kernel) * s.in_width + x + tap % kernel) * s.in_pitch + c;
              if (in[place] > in[best]) best = place;
            }
            const bool cut = relu && in[best] <= 0;
            ASSERT_EQ(out[o], cut ? 0 : in[best]);
            if (!cut) wanted_back[best] += gradient[o];
          }
      for (int64_t i = 0; i < s.in_size(); ++i) ASSERT_NEAR(back[i], wanted_back[i], 1e-5);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sets, KernelsTest, testing::ValuesIn(runnable_kernels()),
                         [](const auto& set) { return std::string(set.param->name); });

}  // namespace
}  // namespace sotto::models::ops

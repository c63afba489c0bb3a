// Keyed random streams.
//
// A stream is named by (seed, purpose, round, client). Two streams with different names are independent, and a stream's
// numbers depend on its name alone: not on thread count, transport, or what else has run. The generator is the
// counter-based Philox 4x32-10, and every distribution here is computed by code whose results do not depend on the
// standard library, so that a run can be repeated elsewhere.
//
// These streams are for simulation (sampling, shuffling, initialisation). They are not cryptographic.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/PhiloxRNGEngine.h>
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

namespace sotto {

class RandomStream {
 public:
  using result_type = uint64_t;  // satisfies UniformRandomBitGenerator

  // `purpose` is a short constant such as "batch-order"; `client` must be below 2^40 and `round` below 2^24.
  RandomStream(uint64_t seed, std::string_view purpose, uint64_t round = 0, uint64_t client = 0);

  uint64_t operator()();
  static constexpr uint64_t min() { return 0; }
  static constexpr uint64_t max() { return std::numeric_limits<uint64_t>::max(); }

  double uniform();  // [0, 1), 53 random bits
  double uniform(double low, double high);
  uint64_t below(uint64_t bound);  // {0 … bound-1}, unbiased; bound > 0
  bool bernoulli(double probability);
  double normal();             // N(0, 1)
  double gamma(double shape);  // Gamma(shape, 1)
  std::vector<double> dirichlet(double alpha, size_t dimensions);

  // Fisher–Yates.
  void shuffle(std::span<int64_t> values);
  // 0 … n-1 in random order.
  std::vector<int64_t> permutation(int64_t n);
  // `count` distinct values out of 0 … n-1, ascending, in O(count) memory.
  std::vector<int64_t> sample_without_replacement(int64_t n, int64_t count);

  // A libtorch CPU generator seeded from this stream, for tensor-valued draws (initialisation, dropout).
  at::Generator torch_generator();

 private:
  at::Philox4_32 engine_;
};

}  // namespace sotto

#include "base/random.h"

#include "base/error.h"

#include <ATen/CPUGeneratorImpl.h>

#include <boost/random/gamma_distribution.hpp>
#include <boost/random/normal_distribution.hpp>

#include <algorithm>
#include <numeric>
#include <unordered_set>

namespace sotto {
namespace {

// FNV-1a over the purpose, then the splitmix64 finaliser over the seed: distinct names give unrelated keys.
uint64_t key_of(uint64_t seed, std::string_view purpose) {
  uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : purpose) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3ULL;
  uint64_t x = seed + 0x9e3779b97f4a7c15ULL * (hash | 1);
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

constexpr int kClientBits = 40;

}  // namespace

RandomStream::RandomStream(uint64_t seed, std::string_view purpose, uint64_t round, uint64_t client)
    : engine_(key_of(seed, purpose), (round << kClientBits) | client, 0) {
  SOTTO_INVARIANT(client < (1ULL << kClientBits) && round < (1ULL << (64 - kClientBits)));
}

uint64_t RandomStream::operator()() {
  const uint64_t high = engine_();
  return (high << 32) | engine_();
}

double RandomStream::uniform() {
  return static_cast<double>((*this)() >> 11) * 0x1.0p-53;
}

double RandomStream::uniform(double low, double high) {
  return low + (high - low) * uniform();
}

uint64_t RandomStream::below(uint64_t bound) {
  SOTTO_INVARIANT(bound > 0);
  const uint64_t rejected = (max() - bound + 1) % bound;  // 2^64 mod bound
  uint64_t draw = (*this)();
  while (draw < rejected) draw = (*this)();
  return draw % bound;
}

bool RandomStream::bernoulli(double probability) {
  return uniform() < probability;
}

double RandomStream::normal() {
  return boost::random::normal_distribution<double>()(*this);
}

double RandomStream::gamma(double shape) {
  return boost::random::gamma_distribution<double>(shape)(*this);
}

std::vector<double> RandomStream::dirichlet(double alpha, size_t dimensions) {
  std::vector<double> weights(dimensions);
  double total = 0.0;
  for (double& weight : weights) total += weight = gamma(alpha);
  if (total <= 0.0) {  // every gamma draw underflowed, as happens for tiny alpha: the limit is one random corner
    weights[below(dimensions)] = total = 1.0;
  }
  for (double& weight : weights) weight /= total;
  return weights;
}

void RandomStream::shuffle(std::span<int64_t> values) {
  for (size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[below(i)]);
}

std::vector<int64_t> RandomStream::permutation(int64_t n) {
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  shuffle(order);
  return order;
}

std::vector<int64_t> RandomStream::sample_without_replacement(int64_t n, int64_t count) {
  SOTTO_INVARIANT(count <= n);
  // Floyd's algorithm: each step adds exactly one new element.
  std::unordered_set<int64_t> chosen;
  for (int64_t j = n - count; j < n; ++j) {
    const auto candidate = static_cast<int64_t>(below(static_cast<uint64_t>(j) + 1));
    chosen.insert(chosen.contains(candidate) ? j : candidate);
  }
  std::vector<int64_t> sorted(chosen.begin(), chosen.end());
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

at::Generator RandomStream::torch_generator() {
  return at::detail::createCPUGenerator((*this)());
}

}  // namespace sotto

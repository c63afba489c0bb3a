// What the two forms of a layer's squared norms cost beyond the plain weight gradient, per example, in nanoseconds of
// one core. Constants were measured (docs/per-example-clipping.md); only their ratio decides anything.
#pragma once

#include <cstdint>

namespace sotto::privacy {

// Weight gradients of `in` × `out` floats from `length` positions, written, read for the norm and read for the sum;
// small products run less efficiently than one large one.
inline double storing_cost(int64_t length, int64_t in, int64_t out) {
  constexpr double kBytesPerNs = 20.0, kProductsPerNs = 45.0, kInefficiency = 0.3;
  const double floats = static_cast<double>(in) * static_cast<double>(out);
  return 12.0 * floats / kBytesPerNs + kInefficiency * static_cast<double>(length) * floats / kProductsPerNs;
}

// Gram matrices in double precision: of `in_positions` vectors of width `in`, `out_positions` of width `out`.
inline double gram_cost(int64_t in_positions, int64_t out_positions, int64_t in, int64_t out) {
  constexpr double kProductsPerNs = 15.0;
  const auto square = [](int64_t n) { return static_cast<double>(n) * static_cast<double>(n); };
  return (square(in_positions) * static_cast<double>(in) + square(out_positions) * static_cast<double>(out)) /
         kProductsPerNs;
}

}  // namespace sotto::privacy

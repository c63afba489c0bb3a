// Tables for drawing Y = round(N(0, s²)), s = 2^S, exactly.
//
// The law of Y is written p = core + rest. Integers are cut into intervals of s/64: interval i holds the magnitudes
// j ∈ [i·2^m, (i+1)·2^m), m = S-6, each standing for the two values Y = j and Y = -1-j.
//
//   core(Y) = n_i · 2^-(16+1+m)   n_i boxes stacked over interval i, all below p. With 16 random bits for the box, one
//                                 for the sign and m for the position the core is drawn without any arithmetic error.
//   rest(Y) = p(Y) - core(Y)      0.8 % of the mass: drawn by rejection. Interval i is proposed with probability
//                                 w_i/2^62, Σ w_i = 2^62 (an integer alias table: exact too), and accepted with
//                                 probability rest(Y) / (w_i·2^-62 · 2^-(1+m) · M).
//
// Multiplied by 2^(1+m), p(Y) is φ(x)/32 with x = |Y|/s, up to a factor 1 + (x²-1)/(24s²) + …; that is why one table
// serves every S. Tables stop at 16 s; what lies beyond has mass below 2^-188.
//
// Two inequalities make it right, both checked in tests/privacy/noise/gaussian_table_test.cc in 50-digit arithmetic:
// core ≤ p at the outer end of every interval, and p - core ≤ proposal at its inner end.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace sotto::privacy {

struct GaussianTable {
  static constexpr int kBoxBits = 16;
  static constexpr int kIntervalsPerScale = 64;
  static constexpr int kLog2IntervalsPerScale = 6;
  static constexpr int kIntervals = 1024;
  static constexpr int kColumnBits = 52;  // probability of one of the 2^10 alias columns, in units of 2^-62
  static constexpr uint8_t kRest = 255;   // a box that stands for the rest

  struct Interval {
    double centre;          // (i + ½)/64
    double centre_density;  // φ(centre)/32
    double core;            // n_i/2^16, exact
    double proposal;        // M·w_i/2^62 to double precision
  };

  // An alias column gives its own interval below the threshold (of 2^52), another one from there on.
  struct Column {
    uint64_t threshold : 54;
    uint64_t alias : 10;
  };

  std::array<uint8_t, size_t{1} << kBoxBits> box;  // the interval a box lies in, or kRest
  std::array<Interval, kIntervals> interval;
  std::array<Column, kIntervals> column;
  std::array<uint64_t, kIntervals> weight;  // w_i
  double envelope;                          // M, a multiple of 2^-30: exact

  static const GaussianTable& get();

 private:
  GaussianTable();
};

}  // namespace sotto::privacy

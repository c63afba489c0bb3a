// The inner loops of Gaussian noise, one build of them per instruction set; all give the same numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sotto::privacy {

inline constexpr int kSignBit = 47;

// A value x becomes grid·(round(x·inverse) + Y). Y is -1-j or j by bit 47 of the random word, where
// j = interval·2^position_bits + the word's lowest position_bits bits.
struct AddParameters {
  double grid;
  double inverse;
  int position_bits;
};

struct NoiseKernels {
  const char* name;

  // Lists the positions where intervals[i] == wanted; returns how many.
  size_t (*find)(const uint16_t* intervals, size_t count, uint16_t wanted, uint16_t* positions);

  // out[i] = Y
  void (*to_integers)(const uint64_t* words, const uint16_t* intervals, size_t count, int position_bits, int64_t* out);

  void (*add_to_floats)(const uint64_t* words, const uint16_t* intervals, size_t count, const AddParameters& parameters,
                        float* values);
  void (*add_to_doubles)(const uint64_t* words, const uint16_t* intervals, size_t count,
                         const AddParameters& parameters, double* values);

  // Whether every |value| ≤ limit; false for NaN.
  bool (*floats_within)(const float* values, size_t count, float limit);
  bool (*doubles_within)(const double* values, size_t count, double limit);
};

// The fastest set this machine can run, and all of them.
const NoiseKernels& noise_kernels();
std::vector<const NoiseKernels*> runnable_noise_kernels();

}  // namespace sotto::privacy

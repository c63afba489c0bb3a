// The inner loops of convolution and pooling on channels-last floats, one build of them per instruction set.
//
// A convolution is a matrix product whose left rows are patches of the image. In channels-last order a patch is a few
// contiguous runs (one per kernel row), so the product reads it where it lies and no patch matrix is ever written.
//
// Matrices on the right are cut into panels of kPanel columns, stored panel by panel: element (k, column) is at
// (column / kPanel)·depth·kPanel + k·kPanel + column % kPanel, missing columns being zero. Dense pixel matrices have
// `pitch` floats between rows, a multiple of kPanel.
#pragma once

#include <cstdint>
#include <vector>

namespace sotto::models::ops {

inline constexpr int64_t kPanel = 16;

inline constexpr int64_t round_up(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// How a patch lies in memory: `runs` runs of `run_length` floats, run_stride apart.
struct PatchShape {
  int64_t runs;
  int64_t run_length;
  int64_t run_stride;

  int64_t depth() const { return runs * run_length; }
};

// Windows of kernel × kernel pixels, without padding.
struct PoolShape {
  int64_t in_height, in_width, out_height, out_width;
  int64_t kernel, stride;
  int64_t channels;
  int64_t in_pitch;  // floats from one input pixel to the next; output pixels are dense

  int64_t in_size() const { return in_height * in_width * in_pitch; }
  int64_t out_size() const { return out_height * out_width * channels; }
};

// The argmax that stands for "no gradient flows".
inline constexpr uint8_t kNoWinner = 255;

struct Kernels {
  const char* name;

  // out[p, :] = bias + patch p × weights. `weights` and `bias` cover `panels` panels.
  void (*multiply_patches)(const float* const* patches, int64_t count, const PatchShape& shape, const float* weights,
                           int64_t panels, const float* bias, float* out, int64_t pitch);

  // weights += Σ_p patch p ⊗ gradient[p, :].
  void (*accumulate_weights)(const float* const* patches, int64_t count, const PatchShape& shape, const float* gradient,
                             int64_t pitch, int64_t panels, float* weights);

  // weights = Σ_p patch p ⊗ gradient[p, :]; its squared norm, to a relative 1e-6 and but for squares below 1e-38.
  double (*store_weights)(const float* const* patches, int64_t count, const PatchShape& shape, const float* gradient,
                          int64_t pitch, int64_t panels, float* weights);

  // patch p += gradient[p, :depth] × weights, where `weights` has one group of panels per run. Patches may overlap.
  void (*scatter_patches)(const float* gradient, int64_t pitch, int64_t count, int64_t depth, const float* weights,
                          const PatchShape& shape, float* const* patches);

  // sums[c] += Σ_p gradient[p, c] for all columns of the pitch.
  void (*sum_rows)(const float* gradient, int64_t count, int64_t pitch, float* sums);

  // Σ values² in double precision.
  double (*sum_squares)(const float* values, int64_t count);

  // out[:width] += Σ_i factors[i] · rows[i, :width], rows `stride` floats apart.
  void (*add_weighted_rows)(const float* rows, int64_t stride, int64_t count, int64_t width, const float* factors,
                            float* out);

  // One image: window maxima (first among equals, NaN wins) and which pixel of the window won. With `relu` maxima are
  // cut at zero and those that were cut have kNoWinner.
  void (*max_pool)(const PoolShape& shape, bool relu, const float* in, float* out, uint8_t* winner);

  // One image: in_gradient (zeroed by the caller, in_pitch apart) += each window's gradient at its winner.
  void (*max_pool_backward)(const PoolShape& shape, const float* out_gradient, const uint8_t* winner,
                            float* in_gradient);
};

// The fastest set this machine can run.
const Kernels& kernels();

// Every set this machine can run, slowest first.
std::vector<const Kernels*> runnable_kernels();

}  // namespace sotto::models::ops

#include "models/ops/direct_conv.h"

#include "models/ops/kernels.h"
#include "models/ops/scratch.h"

#include <ATen/Parallel.h>

#include <algorithm>

namespace sotto::models::ops {

namespace {

// Images and output pixels of a chunk together; a fraction of a core's second-level cache.
constexpr int64_t kChunkFloats = 32 * 1024;
// Samples whose weight gradients are summed by one thread. Fixed, so that the order of the sums is.
constexpr int64_t kPartSamples = 32;

PatchShape patch_shape(const ConvShape& s) {
  return {s.kernel, s.kernel * s.channels, s.padded_width() * s.channels};
}

int64_t padded_size(const ConvShape& s) {
  return s.padded_height() * s.padded_width() * s.channels;
}

int64_t depth(const ConvShape& s) {
  return s.kernel * s.kernel * s.channels;
}

int64_t panels(const ConvShape& s) {
  return s.out_pitch() / kPanel;
}

int64_t packed_size(const ConvShape& s) {
  return depth(s) * s.out_pitch();
}

int64_t panels_per_run(const ConvShape& s) {
  return round_up(s.kernel * s.channels, kPanel) / kPanel;
}

int64_t transposed_size(const ConvShape& s) {
  return s.kernel * panels_per_run(s) * s.filters * kPanel;
}

int64_t samples_per_chunk(const ConvShape& s) {
  return std::clamp<int64_t>(kChunkFloats / (padded_size(s) + s.out_pixels() * s.out_pitch()), 1, kPartSamples);
}

// Calls visit(run, column, filter, weight element); run and column are a patch's. Filters vary fastest, because they
// are neighbours in packed weights.
template <typename Element, typename Visit>
void for_each_weight(const ConvShape& s, Element* weight, const Visit& visit) {
  for (int64_t run = 0; run < s.kernel; ++run)
    for (int64_t tap = 0; tap < s.kernel; ++tap)
      for (int64_t channel = 0; channel < s.channels; ++channel) {
        Element* element = weight + (channel * s.kernel + run) * s.kernel + tap;
        for (int64_t filter = 0; filter < s.filters; ++filter, element += depth(s))
          visit(run, tap * s.channels + channel, filter, *element);
      }
}

int64_t packed_index(const ConvShape& s, int64_t run, int64_t column, int64_t filter) {
  return (filter / kPanel * depth(s) + run * s.kernel * s.channels + column) * kPanel + filter % kPanel;
}

const float* pack_weights(const ConvShape& s, const float* weight) {
  float* packed = scratch(Scratch::kWeights, packed_size(s));
  if (s.filters % kPanel != 0) std::fill_n(packed, packed_size(s), 0.0f);
  for_each_weight(s, weight, [&](int64_t run, int64_t column, int64_t filter, float value) {
    packed[packed_index(s, run, column, filter)] = value;
  });
  return packed;
}

const float* pack_transposed_weights(const ConvShape& s, const float* weight) {
  float* packed = scratch(Scratch::kTransposedWeights, transposed_size(s));
  std::fill_n(packed, transposed_size(s), 0.0f);
  for_each_weight(s, weight, [&](int64_t run, int64_t column, int64_t filter, float value) {
    const int64_t panel = run * panels_per_run(s) + column / kPanel;
    packed[(panel * s.filters + filter) * kPanel + column % kPanel] = value;
  });
  return packed;
}

const float* pack_bias(const ConvShape& s, const float* bias) {
  float* packed = scratch(Scratch::kBias, s.out_pitch());
  std::fill_n(packed, s.out_pitch(), 0.0f);
  std::copy_n(bias, s.filters, packed);
  return packed;
}

// The images with their zero border; the images themselves where there is none.
const float* padded(const ConvShape& s, int64_t samples, const float* images) {
  if (s.padding == 0) return images;
  float* out = scratch(Scratch::kImages, samples * padded_size(s));
  std::fill_n(out, samples * padded_size(s), 0.0f);
  const int64_t row = s.width * s.channels;
  for (int64_t i = 0; i < samples; ++i)
    for (int64_t y = 0; y < s.height; ++y)
      std::copy_n(images + i * s.image_size() + y * row, row,
                  out + i * padded_size(s) + ((y + s.padding) * s.padded_width() + s.padding) * s.channels);
  return out;
}

template <typename Float>
Float* const* patches(const ConvShape& s, int64_t samples, Float* padded_images) {
  static_assert(sizeof(Float*) == 2 * sizeof(float));
  auto** out = reinterpret_cast<Float**>(scratch(Scratch::kPatches, 2 * samples * s.out_pixels()));
  Float** next = out;
  for (int64_t i = 0; i < samples; ++i)
    for (int64_t y = 0; y < s.out_height(); ++y)
      for (int64_t x = 0; x < s.out_width(); ++x)
        *next++ = padded_images + i * padded_size(s) + (y * s.padded_width() + x) * s.stride * s.channels;
  return out;
}

// Adds the products of gradients and weights to where the chunk's patches lie.
void images_backward(const ConvShape& s, int64_t samples, const float* pixels, const float* transposed, float* out) {
  const bool direct = s.padding == 0;
  float* target = direct ? out : scratch(Scratch::kImages, samples * padded_size(s));
  std::fill_n(target, samples * padded_size(s), 0.0f);
  // Image by image: a tile that spans two of them would add up their overlapping patches in another order.
  float* const* targets = patches(s, samples, target);
  for (int64_t i = 0; i < samples; ++i)
    kernels().scatter_patches(pixels + i * s.out_pixels() * s.out_pitch(), s.out_pitch(), s.out_pixels(), s.filters,
                              transposed, patch_shape(s), targets + i * s.out_pixels());
  if (direct) return;
  const int64_t row = s.width * s.channels;
  for (int64_t i = 0; i < samples; ++i)
    for (int64_t y = 0; y < s.height; ++y)
      std::copy_n(target + i * padded_size(s) + ((y + s.padding) * s.padded_width() + s.padding) * s.channels, row,
                  out + i * s.image_size() + y * row);
}

// One packed row per sample of a chunk.
void rows_backward(const ConvShape& s, int64_t samples, const float* const* sample_patches, const float* pixels,
                   float* rows, double* squares) {
  for (int64_t i = 0; i < samples; ++i, rows += conv_row_floats(s), pixels += s.out_pixels() * s.out_pitch()) {
    squares[i] = kernels().store_weights(sample_patches + i * s.out_pixels(), s.out_pixels(), patch_shape(s), pixels,
                                         s.out_pitch(), panels(s), rows);
    float* bias = rows + conv_row_bias_offset(s);
    std::fill_n(bias, s.out_pitch(), 0.0f);
    kernels().sum_rows(pixels, s.out_pixels(), s.out_pitch(), bias);
  }
}

// work(part, first, samples) for every chunk, the chunks of a part in order on one thread.
template <typename Work>
void for_each_chunk(const ConvShape& s, int64_t samples, const Work& work) {
  const int64_t step = samples_per_chunk(s);
  at::parallel_for(0, (samples + kPartSamples - 1) / kPartSamples, 1, [&](int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; ++part) {
      const int64_t last = std::min(samples, (part + 1) * kPartSamples);
      for (int64_t first = part * kPartSamples; first < last; first += step)
        work(part, first, std::min(step, last - first));
    }
  });
}

}  // namespace

int64_t ConvShape::out_pitch() const {
  return round_up(filters, kPanel);
}

void conv_forward(const ConvShape& s, int64_t samples, const float* images, const float* weight, const float* bias,
                  const UsePixels& use) {
  const float* packed = pack_weights(s, weight);
  const float* packed_bias = pack_bias(s, bias);
  for_each_chunk(s, samples, [&](int64_t, int64_t first, int64_t count) {
    const float* chunk = padded(s, count, images + first * s.image_size());
    float* pixels = scratch(Scratch::kPixels, count * s.out_pixels() * s.out_pitch());
    kernels().multiply_patches(patches(s, count, chunk), count * s.out_pixels(), patch_shape(s), packed, panels(s),
                               packed_bias, pixels, s.out_pitch());
    use(first, count, pixels);
  });
}

void conv_backward(const ConvShape& s, int64_t samples, const float* images, const float* weight,
                   const FillPixels& fill, const ConvGradients& gradients) {
  const float* transposed = gradients.images ? pack_transposed_weights(s, weight) : nullptr;
  const bool summed = gradients.weight || gradients.bias;
  const int64_t parts = summed ? (samples + kPartSamples - 1) / kPartSamples : 0;
  const int64_t part_size = packed_size(s) + s.out_pitch();
  float* sums = scratch(Scratch::kGradients, parts * part_size);
  std::fill_n(sums, parts * part_size, 0.0f);

  for_each_chunk(s, samples, [&](int64_t part, int64_t first, int64_t count) {
    const int64_t rows = count * s.out_pixels();
    float* pixels = scratch(Scratch::kPixels, rows * s.out_pitch());
    fill(first, count, pixels);
    float* weight_sum = sums + part * part_size;
    if (gradients.weight || gradients.rows) {
      const float* const* chunk = patches(s, count, padded(s, count, images + first * s.image_size()));
      if (gradients.weight)
        kernels().accumulate_weights(chunk, rows, patch_shape(s), pixels, s.out_pitch(), panels(s), weight_sum);
      if (gradients.rows)
        rows_backward(s, count, chunk, pixels, gradients.rows + first * conv_row_floats(s),
                      gradients.row_squares + first);
    }
    if (gradients.bias) kernels().sum_rows(pixels, rows, s.out_pitch(), weight_sum + packed_size(s));
    if (gradients.images) images_backward(s, count, pixels, transposed, gradients.images + first * s.image_size());
  });

  for (int64_t part = 1; part < parts; ++part)
    for (int64_t i = 0; i < part_size; ++i) sums[i] += sums[part * part_size + i];
  if (gradients.weight)
    for_each_weight(s, gradients.weight, [&](int64_t run, int64_t column, int64_t filter, float& value) {
      value = sums[packed_index(s, run, column, filter)];
    });
  if (gradients.bias) std::copy_n(sums + packed_size(s), s.filters, gradients.bias);
}

int64_t conv_row_floats(const ConvShape& s) {
  return packed_size(s) + s.out_pitch();
}

int64_t conv_row_bias_offset(const ConvShape& s) {
  return packed_size(s);
}

void add_conv_row(const ConvShape& s, const float* row, float* weight) {
  for_each_weight(s, weight, [&](int64_t run, int64_t column, int64_t filter, float& value) {
    value += row[packed_index(s, run, column, filter)];
  });
}

}  // namespace sotto::models::ops

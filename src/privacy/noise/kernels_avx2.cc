// Compiled for AVX2; entered only if the processor has it.
#include "privacy/noise/kernels.h"

#include <immintrin.h>

namespace sotto::privacy::avx2 {
namespace {

#include "privacy/noise/kernels.inc"

size_t find(const uint16_t* intervals, size_t count, uint16_t wanted, uint16_t* positions) {
  constexpr size_t kStride = 32;
  const __m256i all_wanted = _mm256_set1_epi16(static_cast<int16_t>(wanted));
  size_t found = 0, i = 0;
  for (; i + kStride <= count; i += kStride) {
    const __m256i low =
        _mm256_cmpeq_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(intervals + i)), all_wanted);
    const __m256i high =
        _mm256_cmpeq_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(intervals + i + 16)), all_wanted);
    // Packing works within halves: the eight-byte groups of the mask stand for 0-7, 16-23, 8-15, 24-31.
    const __m256i ordered = _mm256_permute4x64_epi64(_mm256_packs_epi16(low, high), 0xd8);
    auto mask = static_cast<uint32_t>(_mm256_movemask_epi8(ordered));
    for (; mask != 0; mask &= mask - 1)
      positions[found++] = static_cast<uint16_t>(i + static_cast<size_t>(__builtin_ctz(mask)));
  }
  return found + find_plainly(intervals, i, count, wanted, positions + found);
}

// Noise for four values, as `noise` computes it.
class Noise {
 public:
  explicit Noise(const AddParameters& p)
      : grid_(_mm256_set1_pd(p.grid)),
        inverse_(_mm256_set1_pd(p.inverse)),
        position_bits_(_mm_cvtsi32_si128(p.position_bits)),
        position_mask_(_mm256_set1_epi64x(static_cast<int64_t>(position_mask(p.position_bits)))) {}

  __m256d added_to(__m256d values, const uint64_t* words, const uint16_t* intervals) const {
    const __m256i word = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(words));
    const __m256i interval = _mm256_cvtepu16_epi64(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(intervals)));
    const __m256i magnitude =
        _mm256_or_si256(_mm256_sll_epi64(interval, position_bits_), _mm256_and_si256(word, position_mask_));
    const __m256i flip = _mm256_cmpgt_epi64(_mm256_setzero_si256(), _mm256_slli_epi64(word, 63 - kSignBit));
    const __m256i noise = _mm256_xor_si256(magnitude, flip);

    const __m256d rounder = _mm256_set1_pd(kRounder);
    const __m256d rounded = _mm256_add_pd(_mm256_mul_pd(values, inverse_), rounder);
    const __m256i sum = _mm256_add_epi64(_mm256_castpd_si256(rounded), noise);
    return _mm256_mul_pd(_mm256_sub_pd(_mm256_castsi256_pd(sum), rounder), grid_);
  }

 private:
  __m256d grid_, inverse_;
  __m128i position_bits_;
  __m256i position_mask_;
};

void add_to_floats(const uint64_t* words, const uint16_t* intervals, size_t count, const AddParameters& parameters,
                   float* values) {
  const Noise noise(parameters);
  size_t i = 0;
  for (; i + 4 <= count; i += 4) {
    const __m256d value = _mm256_cvtps_pd(_mm_loadu_ps(values + i));
    _mm_storeu_ps(values + i, _mm256_cvtpd_ps(noise.added_to(value, words + i, intervals + i)));
  }
  add_plainly(words + i, intervals + i, count - i, parameters, values + i);
}

void add_to_doubles(const uint64_t* words, const uint16_t* intervals, size_t count, const AddParameters& parameters,
                    double* values) {
  const Noise noise(parameters);
  size_t i = 0;
  for (; i + 4 <= count; i += 4) {
    _mm256_storeu_pd(values + i, noise.added_to(_mm256_loadu_pd(values + i), words + i, intervals + i));
  }
  add_plainly(words + i, intervals + i, count - i, parameters, values + i);
}

}  // namespace

extern const NoiseKernels kKernels;
const NoiseKernels kKernels = {
    "avx2", find, to_integers, add_to_floats, add_to_doubles, within<float, int32_t>, within<double, int64_t>};

}  // namespace sotto::privacy::avx2

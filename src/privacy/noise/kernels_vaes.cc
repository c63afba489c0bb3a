// Compiled for AVX2, AES and VAES; entered only if the processor has them.
#include "privacy/noise/aes_kernel.h"
#include "privacy/noise/box_lookup.h"

#include <immintrin.h>

namespace sotto::privacy {
namespace {

constexpr size_t kLanes = 8;           // registers in flight hide the latency of a round
constexpr size_t kGroup = 2 * kLanes;  // blocks

template <int kConstant>
inline __m128i next_round_key(__m128i key) {
  const __m128i mix = _mm_shuffle_epi32(_mm_aeskeygenassist_si128(key, kConstant), 0xff);
  key = _mm_xor_si128(key, _mm_slli_si128(key, 4));
  key = _mm_xor_si128(key, _mm_slli_si128(key, 8));
  return _mm_xor_si128(key, mix);
}

void expand_key(const uint8_t* key, uint8_t (*round_keys)[16]) {
  auto* out = reinterpret_cast<__m128i*>(round_keys);
  out[0] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(key));
  out[1] = next_round_key<0x01>(out[0]);
  out[2] = next_round_key<0x02>(out[1]);
  out[3] = next_round_key<0x04>(out[2]);
  out[4] = next_round_key<0x08>(out[3]);
  out[5] = next_round_key<0x10>(out[4]);
  out[6] = next_round_key<0x20>(out[5]);
  out[7] = next_round_key<0x40>(out[6]);
  out[8] = next_round_key<0x80>(out[7]);
  out[9] = next_round_key<0x1b>(out[8]);
  out[10] = next_round_key<0x36>(out[9]);
}

inline __m256i two_copies(const uint8_t* round_key) {
  return _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(round_key)));
}

inline void encrypt(__m256i (&lanes)[kLanes], const uint8_t (*round_keys)[16]) {
  for (size_t round = 1; round < kAesRounds; ++round) {
    const __m256i key = two_copies(round_keys[round]);
    for (__m256i& lane : lanes) lane = _mm256_aesenc_epi128(lane, key);
  }
  const __m256i key = two_copies(round_keys[kAesRounds]);
  for (__m256i& lane : lanes) lane = _mm256_aesenclast_epi128(lane, key);
}

// Calls done(words, count) for each group of words a little after it was written.
template <typename Done>
inline void fill_groups(AesCounter& counter, uint64_t* words, size_t blocks, const Done& done) {
  // Reverses the bytes of the upper half of each 128-bit lane, where the block number stands.
  const __m256i big_endian = _mm256_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 15, 14, 13, 12, 11, 10, 9, 8,  //
                                              0, 1, 2, 3, 4, 5, 6, 7, 15, 14, 13, 12, 11, 10, 9, 8);
  const auto nonce = static_cast<int64_t>(counter.nonce);
  const auto first = static_cast<int64_t>(counter.next_block);
  const __m256i whitening = two_copies(counter.round_keys[0]);
  const __m256i two_blocks = _mm256_set_epi64x(2, 0, 2, 0);
  __m256i numbers = _mm256_set_epi64x(first + 1, nonce, first, nonce);
  counter.next_block += blocks;
  size_t behind = 0;
  while (blocks > 0) {
    __m256i lanes[kLanes];
    for (__m256i& lane : lanes) {
      lane = _mm256_xor_si256(_mm256_shuffle_epi8(numbers, big_endian), whitening);
      numbers = _mm256_add_epi64(numbers, two_blocks);
    }
    encrypt(lanes, counter.round_keys);
    const size_t written = blocks < kGroup ? 2 * blocks : 2 * kGroup;
    if (blocks >= kGroup) {
      for (size_t i = 0; i < kLanes; ++i) _mm256_storeu_si256(reinterpret_cast<__m256i*>(words) + i, lanes[i]);
    } else {
      __builtin_memcpy(words, lanes, written * sizeof(uint64_t));
    }
    done(words - behind, behind);
    words += written;
    behind = written;
    blocks -= written / 2;
  }
  done(words - behind, behind);
}

void fill(AesCounter& counter, uint64_t* words, size_t blocks) {
  fill_groups(counter, words, blocks, [](const uint64_t*, size_t) {});
}

void fill_and_look_up(AesCounter& counter, uint64_t* words, size_t blocks, const uint8_t* table, uint16_t* found) {
  fill_groups(counter, words, blocks, [&](const uint64_t* group, size_t count) {
    look_up_boxes(group, count, table, found + (group - words));
  });
}

}  // namespace

extern const AesKernel kVectorAes;
const AesKernel kVectorAes = {expand_key, fill, fill_and_look_up};

}  // namespace sotto::privacy

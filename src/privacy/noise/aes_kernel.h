// AES-128 counter mode on processors that encrypt two blocks with one instruction (VAES), for which the linked OpenSSL
// has no counter mode: twice its speed, the same bytes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sotto::privacy {

inline constexpr size_t kAesKeyBytes = 16;
inline constexpr size_t kAesRounds = 10;

// Block number n is AES(nonce ‖ n), n big-endian in the lower eight bytes.
struct AesCounter {
  alignas(16) uint8_t round_keys[kAesRounds + 1][16];
  uint64_t nonce;
  uint64_t next_block;
};

struct AesKernel {
  void (*expand_key)(const uint8_t* key, uint8_t (*round_keys)[16]);
  void (*fill)(AesCounter& counter, uint64_t* words, size_t blocks);
  // The same, and found[i] = table[words[i] >> 48]: looking up uses units of the processor that encryption leaves idle,
  // so that done together they take little longer than either.
  void (*fill_and_look_up)(AesCounter& counter, uint64_t* words, size_t blocks, const uint8_t* table, uint16_t* found);
};

// Null if this processor lacks the instructions.
const AesKernel* vector_aes();

}  // namespace sotto::privacy

// AES-128 in counter mode as a stream of random bytes.
//
// The stream is a function of a 32-byte seed: 16 bytes of key, 8 bytes of nonce (the counter's upper half), 8 bytes
// unused by the cipher. After kBlocksPerKey blocks the next 32 bytes of the stream become the seed and the old one is
// wiped: whoever steals the state later cannot recompute earlier noise.
//
// A keyed permutation never repeats a block, random bytes would: b blocks under one key can be told from random with
// advantage at most b²/2^129 on top of breaking AES. With b = 2^20 that is 2^-89 for each 16 MiB.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace sotto::privacy {

using Seed = std::array<std::byte, 32>;

class Keystream {
 public:
  static constexpr size_t kBlockWords = 2;
  static constexpr uint64_t kBlocksPerKey = uint64_t{1} << 20;

  // How the blocks are computed; all give the same bytes.
  enum class Engine { best, openssl };

  explicit Keystream(const Seed& seed, Engine engine = Engine::best);
  ~Keystream();
  Keystream(Keystream&&) noexcept;
  Keystream& operator=(Keystream&&) noexcept;

  // The next words, an even number of them.
  void fill(std::span<uint64_t> words);
  // The same, and found[i] = table[words[i] >> 48].
  void fill(std::span<uint64_t> words, const uint8_t* table, uint16_t* found);

  // Starts again from another seed.
  void reseed(const Seed& seed);

 private:
  class Cipher;
  // Hands on_part the part of `words` that each key covers.
  template <typename OnPart>
  void fill_under_keys(std::span<uint64_t> words, const OnPart& on_part);

  std::unique_ptr<Cipher> cipher_;
  uint64_t blocks_left_ = 0;
};

}  // namespace sotto::privacy

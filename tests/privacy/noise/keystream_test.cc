#include "privacy/noise/keystream.h"

#include "privacy/noise/aes_kernel.h"

#include <gtest/gtest.h>
#include <openssl/evp.h>

#include <cstring>
#include <vector>

namespace sotto::privacy {
namespace {

Seed some_seed() {
  Seed seed;
  for (size_t i = 0; i < seed.size(); ++i) seed[i] = static_cast<std::byte>(7 * i + 3);
  return seed;
}

std::vector<uint64_t> draw(Keystream& stream, size_t words) {
  std::vector<uint64_t> out(words);
  stream.fill(out);
  return out;
}

// AES(nonce ‖ number), one block at a time.
std::vector<uint64_t> encrypted_counters(const Seed& seed, size_t blocks) {
  EVP_CIPHER_CTX* context = EVP_CIPHER_CTX_new();
  const auto* key = reinterpret_cast<const uint8_t*>(seed.data());
  EVP_EncryptInit_ex(context, EVP_aes_128_ecb(), nullptr, key, nullptr);
  std::vector<uint64_t> out(blocks * 2);
  for (size_t n = 0; n < blocks; ++n) {
    uint8_t block[16] = {};
    std::memcpy(block, key + 16, 8);
    for (int i = 0; i < 8; ++i) block[15 - i] = static_cast<uint8_t>(n >> (8 * i));
    int written = 0;
    EVP_EncryptUpdate(context, reinterpret_cast<uint8_t*>(out.data() + 2 * n), &written, block, 16);
  }
  EVP_CIPHER_CTX_free(context);
  return out;
}

class EveryEngine : public ::testing::TestWithParam<Keystream::Engine> {};

TEST_P(EveryEngine, EncryptsACounter) {
  Keystream stream(some_seed(), GetParam());
  EXPECT_EQ(draw(stream, 2000), encrypted_counters(some_seed(), 1000));
}

TEST_P(EveryEngine, DoesNotDependOnHowMuchIsAskedForAtOnce) {
  Keystream whole(some_seed(), GetParam()), parts(some_seed(), GetParam());
  const std::vector<uint64_t> expected = draw(whole, 400);
  std::vector<uint64_t> joined;
  for (const size_t blocks : {1, 2, 15, 16, 17, 33, 116}) {
    const auto part = draw(parts, 2 * blocks);
    joined.insert(joined.end(), part.begin(), part.end());
  }
  EXPECT_EQ(joined, expected);
}

TEST_P(EveryEngine, TakesItsNextKeyFromItself) {
  Keystream stream(some_seed(), GetParam());
  draw(stream, 2 * Keystream::kBlocksPerKey);
  const std::vector<uint64_t> before = encrypted_counters(some_seed(), Keystream::kBlocksPerKey + 2);
  Seed next;
  std::memcpy(next.data(), before.data() + before.size() - 4, next.size());
  EXPECT_EQ(draw(stream, 20), encrypted_counters(next, 10));
}

TEST_P(EveryEngine, LooksUpWhatItDraws) {
  std::vector<uint8_t> table(size_t{1} << 16);
  for (size_t i = 0; i < table.size(); ++i) table[i] = static_cast<uint8_t>(i * 2654435761U >> 13);
  // Across a change of key, in groups that fill no register evenly.
  Keystream plain(some_seed(), GetParam()), looking(some_seed(), GetParam());
  draw(plain, 2 * Keystream::kBlocksPerKey - 74);
  draw(looking, 2 * Keystream::kBlocksPerKey - 74);
  for (const size_t count : {2, 30, 32, 34, 66, 200}) {
    std::vector<uint64_t> words(count);
    std::vector<uint16_t> found(count);
    looking.fill(words, table.data(), found.data());
    EXPECT_EQ(words, draw(plain, count));
    for (size_t i = 0; i < count; ++i) EXPECT_EQ(found[i], table[words[i] >> 48]);
  }
}

std::vector<Keystream::Engine> engines() {
  return {Keystream::Engine::best, Keystream::Engine::openssl};
}

INSTANTIATE_TEST_SUITE_P(Keystream, EveryEngine, ::testing::ValuesIn(engines()),
                         [](const auto& tested) { return tested.index == 0 ? "best" : "openssl"; });

}  // namespace
}  // namespace sotto::privacy

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

std::vector<std::byte> draw(Keystream& stream, size_t bytes) {
  std::vector<std::byte> out(bytes);
  stream.fill(out);
  return out;
}

// AES(nonce ‖ number), one block at a time.
std::vector<std::byte> encrypted_counters(const Seed& seed, size_t blocks) {
  EVP_CIPHER_CTX* context = EVP_CIPHER_CTX_new();
  const auto* key = reinterpret_cast<const uint8_t*>(seed.data());
  EVP_EncryptInit_ex(context, EVP_aes_128_ecb(), nullptr, key, nullptr);
  std::vector<std::byte> out(blocks * 16);
  for (size_t n = 0; n < blocks; ++n) {
    uint8_t block[16] = {};
    std::memcpy(block, key + 16, 8);
    for (int i = 0; i < 8; ++i) block[15 - i] = static_cast<uint8_t>(n >> (8 * i));
    int written = 0;
    EVP_EncryptUpdate(context, reinterpret_cast<uint8_t*>(out.data()) + 16 * n, &written, block, 16);
  }
  EVP_CIPHER_CTX_free(context);
  return out;
}

class EveryEngine : public ::testing::TestWithParam<Keystream::Engine> {};

TEST_P(EveryEngine, EncryptsACounter) {
  Keystream stream(some_seed(), GetParam());
  EXPECT_EQ(draw(stream, 16 * 1000), encrypted_counters(some_seed(), 1000));
}

TEST_P(EveryEngine, DoesNotDependOnHowMuchIsAskedForAtOnce) {
  Keystream whole(some_seed(), GetParam()), parts(some_seed(), GetParam());
  const std::vector<std::byte> expected = draw(whole, 16 * 200);
  std::vector<std::byte> joined;
  for (const size_t blocks : {1, 2, 15, 16, 17, 33, 116}) {
    const auto part = draw(parts, 16 * blocks);
    joined.insert(joined.end(), part.begin(), part.end());
  }
  EXPECT_EQ(joined, expected);
}

TEST_P(EveryEngine, TakesItsNextKeyFromItself) {
  Keystream stream(some_seed(), GetParam());
  std::vector<std::byte> skipped(16 * Keystream::kBlocksPerKey);
  stream.fill(skipped);
  const std::vector<std::byte> before = encrypted_counters(some_seed(), Keystream::kBlocksPerKey + 2);
  Seed next;
  std::copy(before.end() - 32, before.end(), next.begin());
  EXPECT_EQ(draw(stream, 160), encrypted_counters(next, 10));
}

std::vector<Keystream::Engine> engines() {
  return {Keystream::Engine::best, Keystream::Engine::openssl};
}

INSTANTIATE_TEST_SUITE_P(Keystream, EveryEngine, ::testing::ValuesIn(engines()),
                         [](const auto& tested) { return tested.index == 0 ? "best" : "openssl"; });

}  // namespace
}  // namespace sotto::privacy

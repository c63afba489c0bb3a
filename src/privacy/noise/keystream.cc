#include "privacy/noise/keystream.h"

#include "base/error.h"
#include "privacy/noise/aes_kernel.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <algorithm>
#include <cstring>

namespace sotto::privacy {

// AES-128-CTR under one key.
class Keystream::Cipher {
 public:
  explicit Cipher(Engine engine) : vector_(engine == Engine::best ? vector_aes() : nullptr) {
    if (vector_ == nullptr) {
      context_ = EVP_CIPHER_CTX_new();
      SOTTO_INVARIANT(context_ != nullptr);
    }
  }
  ~Cipher() {
    EVP_CIPHER_CTX_free(context_);  // wipes its key
    OPENSSL_cleanse(&counter_, sizeof counter_);
  }
  Cipher(const Cipher&) = delete;
  Cipher& operator=(const Cipher&) = delete;

  void set_key(const Seed& seed) {
    const auto* key = reinterpret_cast<const uint8_t*>(seed.data());
    if (vector_ != nullptr) {
      counter_.next_block = 0;
      std::memcpy(&counter_.nonce, key + kAesKeyBytes, sizeof counter_.nonce);
      vector_->expand_key(key, counter_.round_keys);
      return;
    }
    std::array<uint8_t, kBlockBytes> first{};
    std::memcpy(first.data(), key + kAesKeyBytes, sizeof counter_.nonce);
    SOTTO_INVARIANT(EVP_EncryptInit_ex(context_, EVP_aes_128_ctr(), nullptr, key, first.data()) == 1);
  }

  void fill(std::byte* out, size_t blocks) {
    if (vector_ != nullptr) {
      vector_->fill(counter_, out, blocks);
      return;
    }
    static const std::array<uint8_t, 16384> kZeros{};
    for (size_t bytes = blocks * kBlockBytes, done = 0; done < bytes;) {
      const size_t part = std::min(bytes - done, kZeros.size());
      int written = 0;
      SOTTO_INVARIANT(EVP_EncryptUpdate(context_, reinterpret_cast<uint8_t*>(out) + done, &written, kZeros.data(),
                                        static_cast<int>(part)) == 1);
      SOTTO_INVARIANT(written == static_cast<int>(part));
      done += part;
    }
  }

 private:
  const AesKernel* vector_;
  AesCounter counter_{};
  EVP_CIPHER_CTX* context_ = nullptr;
};

Keystream::Keystream(const Seed& seed, Engine engine) : cipher_(std::make_unique<Cipher>(engine)) {
  reseed(seed);
}

Keystream::~Keystream() = default;
Keystream::Keystream(Keystream&&) noexcept = default;
Keystream& Keystream::operator=(Keystream&&) noexcept = default;

void Keystream::reseed(const Seed& seed) {
  cipher_->set_key(seed);
  blocks_left_ = kBlocksPerKey;
}

void Keystream::fill(std::span<std::byte> out) {
  SOTTO_INVARIANT(out.size() % kBlockBytes == 0);
  while (!out.empty()) {
    if (blocks_left_ == 0) {
      Seed next;
      cipher_->fill(next.data(), next.size() / kBlockBytes);
      reseed(next);
      OPENSSL_cleanse(next.data(), next.size());
    }
    const size_t blocks = std::min<size_t>(out.size() / kBlockBytes, blocks_left_);
    cipher_->fill(out.data(), blocks);
    blocks_left_ -= blocks;
    out = out.subspan(blocks * kBlockBytes);
  }
}

}  // namespace sotto::privacy

#include "privacy/noise/keystream.h"

#include "base/error.h"
#include "privacy/noise/aes_kernel.h"
#include "privacy/noise/box_lookup.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <algorithm>
#include <bit>
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
    std::array<uint8_t, kBlockWords * sizeof(uint64_t)> first{};
    std::memcpy(first.data(), key + kAesKeyBytes, sizeof counter_.nonce);
    SOTTO_INVARIANT(EVP_EncryptInit_ex(context_, EVP_aes_128_ctr(), nullptr, key, first.data()) == 1);
  }

  void fill(std::span<uint64_t> words) {
    if (vector_ != nullptr) {
      vector_->fill(counter_, words.data(), words.size() / kBlockWords);
      return;
    }
    static const std::array<uint8_t, 16384> kZeros{};
    for (auto bytes = std::as_writable_bytes(words); !bytes.empty();) {
      const size_t part = std::min(bytes.size(), kZeros.size());
      int written = 0;
      SOTTO_INVARIANT(EVP_EncryptUpdate(context_, reinterpret_cast<uint8_t*>(bytes.data()), &written, kZeros.data(),
                                        static_cast<int>(part)) == 1);
      SOTTO_INVARIANT(written == static_cast<int>(part));
      bytes = bytes.subspan(part);
    }
  }

  void fill(std::span<uint64_t> words, const uint8_t* table, uint16_t* found) {
    if (vector_ != nullptr) {
      vector_->fill_and_look_up(counter_, words.data(), words.size() / kBlockWords, table, found);
      return;
    }
    fill(words);
    look_up_boxes(words.data(), words.size(), table, found);
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

template <typename OnPart>
void Keystream::fill_under_keys(std::span<uint64_t> words, const OnPart& on_part) {
  SOTTO_INVARIANT(words.size() % kBlockWords == 0);
  while (!words.empty()) {
    if (blocks_left_ == 0) {
      std::array<uint64_t, sizeof(Seed) / sizeof(uint64_t)> next;
      cipher_->fill(next);
      reseed(std::bit_cast<Seed>(next));
      OPENSSL_cleanse(next.data(), sizeof next);
    }
    const size_t blocks = std::min<size_t>(words.size() / kBlockWords, blocks_left_);
    on_part(words.first(blocks * kBlockWords));
    blocks_left_ -= blocks;
    words = words.subspan(blocks * kBlockWords);
  }
}

void Keystream::fill(std::span<uint64_t> words) {
  fill_under_keys(words, [&](std::span<uint64_t> part) { cipher_->fill(part); });
}

void Keystream::fill(std::span<uint64_t> words, const uint8_t* table, uint16_t* found) {
  fill_under_keys(words,
                  [&](std::span<uint64_t> part) { cipher_->fill(part, table, found + (part.data() - words.data())); });
}

}  // namespace sotto::privacy

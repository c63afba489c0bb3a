#include "privacy/noise/noise_source.h"

#include "base/error.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <pthread.h>
#include <sys/random.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

namespace sotto::privacy {
namespace {

std::atomic<uint64_t> forks{0};

void count_forks() {
  static const int registered = pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1); });
  SOTTO_INVARIANT(registered == 0);
}

Seed system_seed() {
  Seed seed;
  for (size_t have = 0; have < seed.size();) {
    const ssize_t got = getrandom(seed.data() + have, seed.size() - have, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      fail_user(
          "The system's random generator failed ({}): without it there is no secure noise, so nothing was released",
          std::strerror(errno));
    }
    have += static_cast<size_t>(got);
  }
  return seed;
}

void append(std::string& text, uint64_t number) {
  for (int byte = 0; byte < 8; ++byte) text.push_back(static_cast<char>(number >> (8 * byte)));
}

Seed digest(const std::string& text) {
  Seed seed;
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(),
         reinterpret_cast<unsigned char*>(seed.data()));
  return seed;
}

}  // namespace

struct NoiseSource::State {
  State(const Seed& seed, bool is_secure) : keystream(seed), secure(is_secure), forks_seen(forks.load()) {}
  ~State() { OPENSSL_cleanse(buffer.data(), sizeof buffer); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  void refill() {
    keystream.fill(buffer);
    used = 0;
  }

  Keystream keystream;
  bool secure;
  uint64_t forks_seen;
  alignas(32) std::array<uint64_t, 256> buffer{};
  size_t used = buffer.size();
};

NoiseSource::NoiseSource(const Seed& seed, bool secure) : state_(std::make_unique<State>(seed, secure)) {}
NoiseSource::~NoiseSource() = default;
NoiseSource::NoiseSource(NoiseSource&&) noexcept = default;
NoiseSource& NoiseSource::operator=(NoiseSource&&) noexcept = default;

NoiseSource NoiseSource::secure() {
  count_forks();
  Seed seed = system_seed();
  NoiseSource source(seed, true);
  OPENSSL_cleanse(seed.data(), seed.size());
  return source;
}

Seed NoiseSource::fresh_key() {
  return system_seed();
}

NoiseSource NoiseSource::from_key(const Seed& key, std::string_view purpose, uint64_t round) {
  std::string name = "sotto key 1";
  for (const std::byte byte : key) name.push_back(static_cast<char>(byte));
  append(name, round);
  name += purpose;
  NoiseSource source(digest(name), false);
  OPENSSL_cleanse(name.data(), name.size());
  return source;
}

NoiseSource NoiseSource::replay(uint64_t seed, std::string_view purpose, uint64_t round, uint64_t client) {
  std::string name = "sotto noise 1";
  append(name, seed);
  append(name, round);
  append(name, client);
  name += purpose;
  return {digest(name), false};
}

bool NoiseSource::is_secure() const {
  return state_->secure;
}

void NoiseSource::notice_fork() {
  if (!state_->secure || state_->forks_seen == forks.load(std::memory_order_relaxed)) return;
  *this = secure();
}

uint64_t NoiseSource::bits() {
  notice_fork();
  if (state_->used == state_->buffer.size()) state_->refill();
  return std::exchange(state_->buffer[state_->used++], 0);
}

void NoiseSource::words(std::span<uint64_t> out) {
  notice_fork();
  const size_t whole = out.size() / Keystream::kBlockWords * Keystream::kBlockWords;
  state_->keystream.fill(out.first(whole));
  for (uint64_t& word : out.subspan(whole)) word = bits();
}

void NoiseSource::words(std::span<uint64_t> out, const uint8_t* table, uint16_t* found) {
  notice_fork();
  const size_t whole = out.size() / Keystream::kBlockWords * Keystream::kBlockWords;
  state_->keystream.fill(out.first(whole), table, found);
  for (size_t i = whole; i < out.size(); ++i) found[i] = table[(out[i] = bits()) >> 48];
}

void NoiseSource::bytes(std::span<std::byte> out) {
  while (!out.empty()) {
    const uint64_t word = bits();
    const size_t part = std::min(out.size(), sizeof word);
    std::memcpy(out.data(), &word, part);
    out = out.subspan(part);
  }
}

StreamFamily NoiseSource::family() {
  if (is_secure()) return StreamFamily(std::nullopt);
  Seed seed;
  bytes(seed);
  return StreamFamily(seed);
}

NoiseSource StreamFamily::stream(uint64_t number) const {
  if (!seed_) return NoiseSource::secure();
  std::string name = "sotto noise stream 1";
  append(name, number);
  name.append(reinterpret_cast<const char*>(seed_->data()), seed_->size());
  return {digest(name), false};
}

}  // namespace sotto::privacy

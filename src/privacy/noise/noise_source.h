// Where noise gets its random bits.
//
// A secure source is keyed by the operating system, has no seed and cannot be replayed; if the system's generator
// fails, so does the release. A replayable source is the same generator keyed by SHA-256 of (seed, purpose, round,
// client): a simulation gives the same noise whatever the threads, and gives no privacy against who knows the seed.
//
// One object belongs to one thread. State and buffers are wiped on destruction. After fork() a secure source in the
// child process takes a new key from the system before it gives another bit, so that parent and child never share
// noise; a replayable one continues as if copied. (Processes made by a bare clone() system call are not noticed.)
#pragma once

#include "privacy/noise/keystream.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

namespace sotto::privacy {

class StreamFamily;

class NoiseSource {
 public:
  static NoiseSource secure();
  // `purpose` is a short constant such as "update-noise"; each use of noise has its own.
  static NoiseSource replay(uint64_t seed, std::string_view purpose, uint64_t round, uint64_t client);

  // 32 bytes from the operating system, for secrets that must be drawn from again after a restart.
  static Seed fresh_key();
  // What follows from such a key: as secret as the key is kept.
  static NoiseSource from_key(const Seed& key, std::string_view purpose, uint64_t round);

  ~NoiseSource();
  NoiseSource(NoiseSource&&) noexcept;
  NoiseSource& operator=(NoiseSource&&) noexcept;

  bool is_secure() const;

  // 64 fresh bits.
  uint64_t bits();
  // Fresh bits in bulk: faster than bits(), and not the numbers that bits() would have given.
  void words(std::span<uint64_t> out);
  // The same, and found[i] = table[out[i] >> 48] in the same pass; the table has 2^16 entries.
  void words(std::span<uint64_t> out, const uint8_t* table, uint16_t* found);
  void bytes(std::span<std::byte> out);

  // Streams that several threads can draw from, in any order, for one release. Each call starts a new family.
  StreamFamily family();

 private:
  friend class StreamFamily;
  struct State;
  NoiseSource(const Seed& seed, bool secure);
  void notice_fork();

  std::unique_ptr<State> state_;
};

// Independent sources numbered 0, 1, 2 …, e.g. one per chunk of a tensor.
class StreamFamily {
 public:
  // Of a replayable family the same number gives the same stream; of a secure one every call gives a fresh key.
  NoiseSource stream(uint64_t number) const;

 private:
  friend class NoiseSource;
  explicit StreamFamily(std::optional<Seed> seed) : seed_(seed) {}

  std::optional<Seed> seed_;  // none: secure
};

}  // namespace sotto::privacy

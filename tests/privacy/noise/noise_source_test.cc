#include "privacy/noise/noise_source.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <set>
#include <vector>

namespace sotto::privacy {
namespace {

TEST(ReplaySource, RepeatsItself) {
  NoiseSource a = NoiseSource::replay(1, "test", 2, 3), b = NoiseSource::replay(1, "test", 2, 3);
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(a.bits(), b.bits());
  EXPECT_FALSE(a.is_secure());
}

// Runs must be repeatable by later builds and on other machines.
TEST(ReplaySource, KeepsItsNumbers) {
  NoiseSource source = NoiseSource::replay(1, "test", 2, 3);
  EXPECT_EQ(source.bits(), 15005878267643422304ULL);
  std::array<uint64_t, 3> words;
  source.words(words);
  EXPECT_EQ(words[2], 860062994301702849ULL);
  EXPECT_EQ(source.family().stream(5).bits(), 14616234453462950752ULL);
}

TEST(ReplaySource, EveryPartOfTheNameMatters) {
  std::set<uint64_t> first;
  first.insert(NoiseSource::replay(1, "test", 2, 3).bits());
  first.insert(NoiseSource::replay(2, "test", 2, 3).bits());
  first.insert(NoiseSource::replay(1, "tess", 2, 3).bits());
  first.insert(NoiseSource::replay(1, "test", 3, 3).bits());
  first.insert(NoiseSource::replay(1, "test", 2, 4).bits());
  first.insert(NoiseSource::replay(1, "", 2, 3).bits());
  EXPECT_EQ(first.size(), 6u);
}

TEST(ReplaySource, FamiliesAndTheirStreamsDiffer) {
  NoiseSource source = NoiseSource::replay(1, "test", 2, 3);
  const StreamFamily a = source.family(), b = source.family();
  EXPECT_EQ(a.stream(0).bits(), a.stream(0).bits());
  const std::set<uint64_t> first = {a.stream(0).bits(), a.stream(1).bits(), b.stream(0).bits(), b.stream(1).bits(),
                                    source.bits()};
  EXPECT_EQ(first.size(), 5u);
}

TEST(SecureSource, NeverRepeats) {
  NoiseSource a = NoiseSource::secure(), b = NoiseSource::secure();
  EXPECT_TRUE(a.is_secure());
  const StreamFamily family = a.family();
  EXPECT_TRUE(family.stream(0).is_secure());
  const std::set<uint64_t> first = {a.bits(), a.bits(), b.bits(), family.stream(0).bits(), family.stream(0).bits()};
  EXPECT_EQ(first.size(), 5u);
}

// What a forked child draws from `source`.
std::array<uint64_t, 2> draw_in_child(NoiseSource& source) {
  int ends[2];
  EXPECT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    std::array<uint64_t, 2> drawn = {source.bits(), 0};
    std::array<uint64_t, 2> words;
    source.words(words);
    drawn[1] = words[0];
    const bool sent = ::write(ends[1], drawn.data(), sizeof drawn) == sizeof drawn;
    ::_exit(sent ? 0 : 1);
  }
  std::array<uint64_t, 2> received{};
  EXPECT_EQ(::read(ends[0], received.data(), sizeof received), static_cast<ssize_t>(sizeof received));
  int status = 0;
  ::waitpid(child, &status, 0);
  ::close(ends[0]);
  ::close(ends[1]);
  return received;
}

TEST(SecureSource, AForkedChildDrawsItsOwn) {
  NoiseSource source = NoiseSource::secure();
  source.bits();  // both processes now hold the same buffer
  const auto of_child = draw_in_child(source);
  const uint64_t bits = source.bits();
  std::array<uint64_t, 2> words;
  source.words(words);
  EXPECT_NE(of_child[0], bits);
  EXPECT_NE(of_child[1], words[0]);
}

TEST(ReplaySource, AForkedChildContinues) {
  NoiseSource source = NoiseSource::replay(1, "test", 2, 3);
  const auto of_child = draw_in_child(source);
  EXPECT_EQ(of_child[0], source.bits());
}

}  // namespace
}  // namespace sotto::privacy

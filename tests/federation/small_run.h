// Runs of the small federation, and settings that must be refused.
#pragma once

#include "base/error.h"
#include "federation/loop.h"
#include "small_setup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sotto::federation {

// What a run leaves behind.
struct Last : RunSink {
  void upload(int64_t, int64_t, const privacy::Upload& upload) override { uploads.push_back(clone(upload.values())); }
  void round(const RoundRecord& record) override { rounds.push_back(record); }
  void checkpoint(const Checkpoint& point) override { broadcast = clone(point.broadcast.values); }
  std::vector<NamedTensors> uploads;
  std::vector<RoundRecord> rounds;
  NamedTensors broadcast;
};

template <typename Sink = Last>
Sink run(const Setup& setup, privacy::Ledger& ledger, int threads = 2) {
  Sink sink;
  const auto states = make_memory_store({});
  run_rounds(setup, {*states, ledger, sink, threads}, std::nullopt);
  return sink;
}

inline void expect_refused(const std::string& toml, const std::string& reason) {
  try {
    small_setup(toml).plan_for(0);
    FAIL() << "accepted: " << toml;
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr(reason));
  }
}

}  // namespace sotto::federation

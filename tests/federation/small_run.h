// Runs of the small federation, and settings that must be refused.
#pragma once

#include "base/error.h"
#include "federation/state_store.h"
#include "small_setup.h"
#include "transport/simulation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sotto::federation {

// Where the results of a run go.
struct RunSink {
  virtual ~RunSink() = default;
  virtual void upload(int64_t round, int64_t client, const privacy::Upload& upload) = 0;
  virtual void round(const RoundRecord& record) = 0;
  virtual void checkpoint(const Checkpoint& point) = 0;
};

// All rounds, with recorded uploads and checkpoints as the settings ask for.
inline void run_rounds(const Setup& setup, StateStore& states, privacy::Ledger& ledger, RunSink& sink, int threads,
                       const std::optional<Checkpoint>& resume = std::nullopt) {
  const auto watch = [&](int64_t round, const Reply& reply) {
    if (setup.spec().record.uploads && reply.upload) sink.upload(round, reply.client, *reply.upload);
  };
  transport::Simulation simulation(setup, states, ledger, {.threads = threads, .resume = resume, .watcher = watch});
  while (const auto record = simulation.next_round()) {
    sink.round(*record);
    if (!simulation.checkpoint_due()) continue;
    states.commit(record->round);
    sink.checkpoint(simulation.checkpoint());
  }
}

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
  run_rounds(setup, *states, ledger, sink, threads);
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

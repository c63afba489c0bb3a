// Where clients' personal state lives between rounds, and how it survives a crash.
//
// restore() can go back to either of the last two commits, whatever was written since: a crash between a commit and the
// checkpoint that belongs to it loses nothing.
#pragma once

#include "privacy/release.h"

#include <cstdint>
#include <filesystem>
#include <memory>

namespace sotto::federation {

class StateStore {
 public:
  virtual ~StateStore() = default;
  // The client's state, empty if it has none yet. Thread-safe for different clients.
  virtual privacy::PrivateState get(int64_t client) const = 0;
  virtual void put(int64_t client, int64_t round, privacy::PrivateState state) = 0;
  // Makes everything put so far durable as the state after `round`.
  virtual void commit(int64_t round) = 0;
  // Goes back to what was committed for `round`. Changes nothing on disk.
  virtual void restore(int64_t round) = 0;
};

// Which clients' states a process keeps where several work on one run: every `count`-th client from `index` on. They
// share the folder, and a run may go on with another count.
struct StatePart {
  int64_t index = 0;
  int64_t count = 1;

  bool holds(int64_t client) const { return client % count == index; }
};

// States in memory; commit writes them all to one file in `folder`, one of each part. An empty `folder` keeps nothing
// on disk.
std::unique_ptr<StateStore> make_memory_store(const std::filesystem::path& folder, StatePart part = {});

// One file per client and round in `folder`; memory holds two integers per client that ever took part.
std::unique_ptr<StateStore> make_disk_store(const std::filesystem::path& folder, StatePart part = {});

// Removes what only unfinished runs need: all states but those of `round`, or, if `round` is 0, all of them; then the
// folder says so.
void discard_states(const std::filesystem::path& folder, int64_t round);
// Whether all were removed.
bool states_were_discarded(const std::filesystem::path& folder);

}  // namespace sotto::federation

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

// States in memory; commit writes them all to one file in `folder`. An empty `folder` keeps nothing on disk.
std::unique_ptr<StateStore> make_memory_store(const std::filesystem::path& folder);

// One file per client and round in `folder`; memory holds two integers per client that ever took part.
std::unique_ptr<StateStore> make_disk_store(const std::filesystem::path& folder);

}  // namespace sotto::federation

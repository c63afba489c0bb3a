// One client at work: its records, its state, its ledger. What a process at the client's home is, and what a simulation
// has one of for every client it asks.
#pragma once

#include "federation/setup.h"
#include "federation/state_store.h"
#include "federation/transport.h"
#include "privacy/ledger.h"

#include <cstdint>

namespace sotto::federation {

// Who releases in the name of `client` (or of everyone, at the server), and with what noise.
privacy::ReleaseContext release_context(const PublicSetup& setup, privacy::Ledger& ledger, int64_t round,
                                        int64_t client);

class ClientRuntime {
 public:
  // All arguments must outlive it. The method object is lent: it keeps nothing of the client between calls.
  ClientRuntime(const Setup& setup, int64_t client, methods::ClientMethod& method, StateStore& states,
                privacy::Ledger& ledger);

  // One round's work. `participation` says which of the client's rounds this is, from 1. A client that cannot pay
  // abstains; one whose training diverged sends nothing, and its state stays as it was.
  Reply serve(const methods::Broadcast& broadcast, int64_t participation);

  // On held-out records, with the client's own model if the method has such.
  ClientScore evaluate(const methods::Broadcast& broadcast, const HeldOut& held_out);

 private:
  const Setup& setup_;
  int64_t client_;
  methods::ClientMethod& method_;
  StateStore& states_;
  privacy::Ledger& ledger_;
};

}  // namespace sotto::federation

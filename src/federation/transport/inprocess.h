// All clients in this process, on as many threads as asked for.
#pragma once

#include "federation/setup.h"
#include "federation/state_store.h"
#include "federation/transport/transport.h"

#include <memory>
#include <vector>

namespace sotto::federation {

// One method object, with its model and buffers, per worker thread; kept for the whole run.
using Workers = std::vector<std::unique_ptr<methods::ClientMethod>>;
Workers make_workers(const Setup& setup, int threads);

// Who releases in the name of `client` (or of everyone, at the server), and with what noise.
privacy::ReleaseContext release_context(const Setup& setup, privacy::Ledger& ledger, int64_t round, int64_t client);

// All arguments must outlive the transport.
std::unique_ptr<Transport> make_inprocess_transport(const Setup& setup, Workers& workers, StateStore& states,
                                                    privacy::Ledger& ledger);

}  // namespace sotto::federation

// The round loop against bare loops that only train: Fashion-MNIST, 600 images a client, 10 clients a round.
#pragma once

#include "transport/ranks.h"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>

namespace sotto::bench {

struct SimulateOptions {
  int64_t clients = 100;  // registered
  int64_t repeats = 7;
  bool engine_only = false;  // without the bare loops, e.g. to compare peak memory
  int threads = 0;           // clients trained at once; 0 = all cores
};

// clients, threads; rounds_per_s, samples_per_s, rounds_per_s_1_thread, scaling_N_threads, fraction_of_peak,
// peak_rss_mb. With the bare loops also bare_rounds_per_s (plain libtorch), bare_own_rounds_per_s (the engine's own
// model), overhead over the latter on one thread, and speedup_over_bare. Sets the process's intra-op threads to one.
nlohmann::json measure_simulation(const SimulateOptions& options);

// The same rounds over ranks, one thread each, against rank 0 alone, in turns: ranks; rounds_per_s,
// rounds_per_s_1_rank, scaling_ranks; communication_share, the share of a round over ranks in which rank 0 packed,
// moved or unpacked messages; upload_ms, what it needs for an upload of another rank that has arrived: to unpack it, to
// make its row durable, to add it; latency_us of an empty message there and back and bandwidth_mb_per_s of a large one,
// both halved. Called at every rank; nothing at all but rank 0.
nlohmann::json measure_simulation(const SimulateOptions& options, transport::Ranks& ranks);

}  // namespace sotto::bench

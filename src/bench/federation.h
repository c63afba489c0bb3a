// What a federation between machines costs: the real server as a process of its own, clients here, over TLS with
// certificates on both sides.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <filesystem>
#include <string>

namespace sotto::bench {

struct FederationOptions {
  int64_t connections = 1000;    // clients at a time, each with a model of a million parameters
  int64_t reporters = 100;       // of a round, against which one is held in which everybody reports
  int64_t rounds = 2;            // of either
  std::string only;              // uploads, sealing, four-clients or connections; "": all of them
  bool quick = false;            // small models and few repetitions: to see that everything works, not to measure
  std::filesystem::path folder;  // for files of the meantime; "" is where temporary files go
};

// connections, parameters, failed (clients that met an error), uploads;
// upload_ratio: throughput of uploads from the offer to their being stored, over a bare stream of the same chunks;
//   upload_processor_ratio, the same in processor time of both ends, which others on the machine do not disturb;
//   upload_mb_s, bare_stream_mb_s;
// server_rss_mb, its highest with all connections and all reporting; listening_rss_mb, before anybody came; allowed_rss_mb,
//   160 kB a connection and ten models on top of that; rss_per_connection_kb, of idle ones; rss_growth_1000_over_100,
//   the highest with all reporting over that with `reporters`;
// idle_to_work_ms: from a round's broadcast being on the server's disk to a waiting client's having been told, the
//   median, and idle_to_work_worst_ms;
// overhead_four_clients: a round of four clients over the same round in one process, minus one; training_s, the latter;
// sealing_share: of a client's step in the hospital example; sealing_ms, step_ms.
// To be called before this process has threads. Sets its intra-op threads to one.
nlohmann::json measure_federation(const FederationOptions& options);

}  // namespace sotto::bench

// How good the models are, for whom.
#pragma once

#include "federation/client_score.h"
#include "federation/transport.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace sotto::federation {

// At most this many clients are evaluated unless federation.eval_clients says otherwise.
inline constexpr int64_t kMaxEvaluatedClients = 1000;

// One method object, with its model and buffers, per thread; kept for the whole run and lent to clients in turn.
using Workers = std::vector<std::unique_ptr<methods::ClientMethod>>;
Workers make_workers(const Setup& setup, int threads);

// Held-out records are tested in chunks of so many: as many chunks as there are, and the rows of one of them.
int64_t test_chunks(const HeldOut& held_out);
at::Tensor test_chunk(const HeldOut& held_out, int64_t chunk);

struct Evaluation {
  std::vector<ClientScore> clients;
  std::map<std::string, double> domain_accuracy;  // mean over the clients of a domain, by its name
  // The global model on all held-out records; NaN where the method has no global model.
  double global_accuracy = kUndefined;
  double global_balanced_accuracy = kUndefined;
  double global_auroc = kUndefined;

  // One score over all clients, e.g. over(&ClientScore::accuracy).
  Spread over(double ClientScore::*score) const;
};

// Who is evaluated in every evaluation of a run.
std::vector<int64_t> evaluated_clients(const config::RunSpec& spec);

class Evaluator {
 public:
  // Whoever holds the test records and the clients are asked through the transport. All arguments must outlive the
  // evaluator.
  Evaluator(const Setup& setup, const HeldOut& held_out, Transport& transport);

  // Personal models on their clients' held-out records if the method has them, else the global model on each client's.
  Evaluation evaluate(const methods::Broadcast& broadcast);

 private:
  void evaluate_global(const methods::Broadcast& broadcast, Evaluation& evaluation);
  bool asks_clients() const;
  void ask_clients(const methods::Broadcast& broadcast, Evaluation& evaluation);

  const Setup& setup_;
  const HeldOut& held_out_;
  Transport& transport_;
  std::vector<int64_t> clients_;
};

}  // namespace sotto::federation

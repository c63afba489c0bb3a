// How good the models are, for whom.
#pragma once

#include "federation/scores.h"
#include "federation/setup.h"
#include "federation/state_store.h"
#include "federation/transport/inprocess.h"

#include <map>
#include <string>
#include <vector>

namespace sotto::federation {

// At most this many clients are evaluated unless federation.eval_clients says otherwise.
inline constexpr int64_t kMaxEvaluatedClients = 1000;

struct ClientScore {
  int64_t client = 0;
  int64_t domain = -1;           // -1: records of several domains
  int64_t records = 0;           // held-out records of the client
  double accuracy = kUndefined;  // on its held-out records
  double balanced_accuracy = kUndefined;
  double auroc = kUndefined;               // binary tasks
  double local_accuracy = kUndefined;      // on held-out records of the classes it trains on
  double neighbour_accuracy = kUndefined;  // on a fixed sample of records of the classes it does not train on
};

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

class Evaluator {
 public:
  // All arguments must outlive the evaluator.
  Evaluator(const Setup& setup, Workers& workers, const StateStore& states);

  // Personal models on their clients' held-out records if the method has them, else the global model on each client's.
  Evaluation evaluate(const methods::Broadcast& broadcast);

 private:
  Predictions predict(methods::ClientMethod& method, const at::Tensor& indices) const;
  ClientScore score(int64_t client, const std::function<Predictions(const at::Tensor& indices)>& predictions) const;
  void evaluate_global(const methods::Broadcast& broadcast, Evaluation& evaluation);
  void evaluate_personal(const methods::Broadcast& broadcast, Evaluation& evaluation);

  const Setup& setup_;
  Workers& workers_;
  const StateStore& states_;
  const data::Records& held_out_;  // the split that test shards index
  std::vector<int64_t> clients_;   // who is evaluated
  at::Tensor universe_;            // all held-out records, ascending
  at::Tensor neighbour_sample_;    // a fixed part of them
};

}  // namespace sotto::federation

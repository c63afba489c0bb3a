// How good a client's model is, on records that it does not train on.
#pragma once

#include "federation/scores.h"
#include "federation/setup.h"

#include <cstdint>
#include <functional>

namespace sotto::federation {

struct ClientScore {
  int64_t client = 0;
  int64_t domain = -1;           // -1: records of several domains
  int64_t records = 0;           // held-out records of the client
  double accuracy = kUndefined;  // on its held-out records
  double balanced_accuracy = kUndefined;
  double auroc = kUndefined;                 // binary tasks
  double local_accuracy = kUndefined;        // on held-out records of the classes it trains on
  double neighbour_accuracy = kUndefined;    // on a fixed sample of records of the classes it does not train on
  double global_test_accuracy = kUndefined;  // on the records that every client's model is tested on
  double validation_accuracy = kUndefined;   // on the records set apart to choose settings by
};

// The records that models are tested on.
struct HeldOut {
  explicit HeldOut(const Setup& setup, const std::vector<int64_t>& clients);

  data::Records records;        // the split that test shards index
  at::Tensor universe;          // all held-out records of these clients, ascending
  at::Tensor neighbour_sample;  // a fixed part of them
  at::Tensor global_sample;     // as many of them as federation.global_test asks for; undefined if it asks for none
};

// What the selected model says of rows of `records`, in batches.
Predictions predict(methods::ClientMethod& method, const data::Records& records, const at::Tensor& rows);
Predictions concatenate(const std::vector<Predictions>& parts);
// Those at these positions.
Predictions select(const Predictions& all, const at::Tensor& positions);

// The selected model on the records that were set apart to choose settings by; undefined without such.
double validation_accuracy(const Setup& setup, int64_t client, methods::ClientMethod& method);

// `predictions` says what the client's model makes of rows of the held-out records.
ClientScore score_client(const Setup& setup, int64_t client, const HeldOut& held_out,
                         const std::function<Predictions(const at::Tensor& rows)>& predictions);

}  // namespace sotto::federation

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
  double auroc = kUndefined;               // binary tasks
  double local_accuracy = kUndefined;      // on held-out records of the classes it trains on
  double neighbour_accuracy = kUndefined;  // on a fixed sample of records of the classes it does not train on
};

// The records that models are tested on.
struct HeldOut {
  explicit HeldOut(const Setup& setup, const std::vector<int64_t>& clients);

  data::Records records;        // the split that test shards index
  at::Tensor universe;          // all held-out records of these clients, ascending
  at::Tensor neighbour_sample;  // a fixed part of them
};

// What the selected model says of rows of `records`, in batches.
Predictions predict(methods::ClientMethod& method, const data::Records& records, const at::Tensor& rows);
Predictions concatenate(const std::vector<Predictions>& parts);
// Those at these positions.
Predictions select(const Predictions& all, const at::Tensor& positions);

// `predictions` says what the client's model makes of rows of the held-out records.
ClientScore score_client(const Setup& setup, int64_t client, const HeldOut& held_out,
                         const std::function<Predictions(const at::Tensor& rows)>& predictions);

}  // namespace sotto::federation

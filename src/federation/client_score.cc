#include "federation/client_score.h"

#include "base/random.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <vector>

namespace sotto::federation {
namespace {

constexpr int64_t kBatch = 256;
constexpr int64_t kNeighbourSample = 1000;

// The held-out records of all these clients, each once.
at::Tensor union_of_test_shards(const data::Partition& partition, const std::vector<int64_t>& clients,
                                int64_t records) {
  at::Tensor held_out = at::zeros({records}, at::kBool);
  for (const int64_t client : clients) held_out.index_fill_(0, partition.shard(client).test, true);
  return held_out.nonzero().squeeze(1);
}

at::Tensor classes_present(const data::Records& records, const at::Tensor& rows, int64_t classes) {
  return at::bincount(records.y.index_select(0, rows), {}, classes).gt(0);
}

at::Tensor fixed_sample(const at::Tensor& universe, uint64_t seed, const char* purpose, int64_t most) {
  RandomStream stream(seed, purpose);
  const auto chosen = stream.sample_without_replacement(universe.size(0), std::min(most, universe.size(0)));
  return universe.index_select(0, at::tensor(chosen, at::kLong));
}

}  // namespace

HeldOut::HeldOut(const Setup& setup, const std::vector<int64_t>& clients) {
  const data::Dataset& dataset = setup.dataset();
  const bool has_test = dataset.test.size() > 0;
  records = has_test ? dataset.test : dataset.train;
  universe = has_test ? at::arange(records.size(), at::kLong)
                      : union_of_test_shards(setup.partition(), clients, records.size());
  neighbour_sample = fixed_sample(universe, setup.spec().seed, "neighbour-sample", kNeighbourSample);
  const int64_t wanted = setup.spec().federation.global_test;
  if (wanted > 0) global_sample = fixed_sample(universe, setup.spec().seed, "global-test", wanted);
}

Predictions predict(methods::ClientMethod& method, const data::Records& records, const at::Tensor& rows) {
  std::vector<Predictions> parts;
  data::Batch batch;
  for (int64_t begin = 0; begin < rows.size(0); begin += kBatch) {
    data::gather(records, rows.narrow(0, begin, std::min(kBatch, rows.size(0) - begin)), batch);
    const at::Tensor logits = method.predict(batch.x);
    const at::Tensor score = logits.size(1) == 2 ? logits.select(1, 1) - logits.select(1, 0) : at::Tensor();
    parts.push_back({logits.argmax(1), score, batch.y.clone()});
  }
  if (parts.empty()) parts.push_back({at::empty({0}, at::kLong), at::Tensor(), at::empty({0}, at::kLong)});
  return concatenate(parts);
}

Predictions concatenate(const std::vector<Predictions>& parts) {
  std::vector<at::Tensor> predicted, score, truth;
  for (const auto& part : parts) {
    predicted.push_back(part.predicted);
    truth.push_back(part.truth);
    if (part.score.defined()) score.push_back(part.score);
  }
  return {at::cat(predicted), score.empty() ? at::Tensor() : at::cat(score), at::cat(truth)};
}

Predictions select(const Predictions& all, const at::Tensor& positions) {
  return {all.predicted.index_select(0, positions),
          all.score.defined() ? all.score.index_select(0, positions) : at::Tensor(),
          all.truth.index_select(0, positions)};
}

double validation_accuracy(const Setup& setup, int64_t client, methods::ClientMethod& method) {
  const at::Tensor rows = setup.partition().shard(client).validation;
  return rows.defined() ? accuracy(predict(method, setup.dataset().train, rows)) : kUndefined;
}

ClientScore score_client(const Setup& setup, int64_t client, const HeldOut& held_out,
                         const std::function<Predictions(const at::Tensor& rows)>& predictions) {
  const data::Shard shard = setup.partition().shard(client);
  const at::Tensor present = classes_present(setup.dataset().train, shard.train, setup.dataset().classes());
  const Predictions own = predictions(shard.test);

  ClientScore score;
  score.client = client;
  score.domain = shard.domain;
  score.records = shard.test.size(0);
  score.accuracy = accuracy(own);
  score.balanced_accuracy = balanced_accuracy(own);
  score.auroc = auroc(own);
  score.local_accuracy = accuracy(select(own, present.index_select(0, own.truth).nonzero().squeeze(1)));
  if (!present.all().item<bool>()) {
    const at::Tensor sample_labels = held_out.records.y.index_select(0, held_out.neighbour_sample);
    const at::Tensor foreign = present.index_select(0, sample_labels).logical_not().nonzero().squeeze(1);
    score.neighbour_accuracy = accuracy(predictions(held_out.neighbour_sample.index_select(0, foreign)));
  }
  if (held_out.global_sample.defined()) score.global_test_accuracy = accuracy(predictions(held_out.global_sample));
  return score;
}

}  // namespace sotto::federation

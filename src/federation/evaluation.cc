#include "federation/evaluation.h"

#include "base/parallel.h"
#include "base/progress.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace sotto::federation {
namespace {

constexpr int64_t kBatch = 256;
constexpr int64_t kChunk = 512;
constexpr int64_t kNeighbourSample = 1000;

std::vector<int64_t> choose_clients(const config::RunSpec& spec) {
  const int64_t all = spec.data.clients;
  const int64_t asked = spec.federation.eval_clients;
  const int64_t count = std::min(all, asked == 0 ? kMaxEvaluatedClients : asked);
  return RandomStream(spec.seed, "evaluated-clients").sample_without_replacement(all, count);
}

// The held-out records of all evaluated clients, each once.
at::Tensor union_of_test_shards(const data::Partition& partition, const std::vector<int64_t>& clients,
                                int64_t records) {
  at::Tensor held_out = at::zeros({records}, at::kBool);
  for (const int64_t client : clients) held_out.index_fill_(0, partition.shard(client).test, true);
  return held_out.nonzero().squeeze(1);
}

at::Tensor classes_present(const data::Records& records, const at::Tensor& indices, int64_t classes) {
  return at::bincount(records.y.index_select(0, indices), {}, classes).gt(0);
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

Predictions rows(const Predictions& all, const at::Tensor& at) {
  return {all.predicted.index_select(0, at), all.score.defined() ? all.score.index_select(0, at) : at::Tensor(),
          all.truth.index_select(0, at)};
}

}  // namespace

Spread Evaluation::over(double ClientScore::*score) const {
  std::vector<double> values;
  values.reserve(clients.size());
  for (const auto& client : clients) values.push_back(client.*score);
  return spread(values);
}

Evaluator::Evaluator(const Setup& setup, Workers& workers, const StateStore& states)
    : setup_(setup),
      workers_(workers),
      states_(states),
      held_out_(setup.data.dataset.test.size() > 0 ? setup.data.dataset.test : setup.data.dataset.train),
      clients_(choose_clients(setup.spec)) {
  universe_ = setup.data.dataset.test.size() > 0 ? at::arange(held_out_.size(), at::kLong)
                                                 : union_of_test_shards(*setup.partition, clients_, held_out_.size());
  RandomStream stream(setup.spec.seed, "neighbour-sample");
  const auto chosen =
      stream.sample_without_replacement(universe_.size(0), std::min(kNeighbourSample, universe_.size(0)));
  neighbour_sample_ = universe_.index_select(0, at::tensor(chosen, at::kLong));
}

Predictions Evaluator::predict(methods::ClientMethod& method, const at::Tensor& indices) const {
  std::vector<Predictions> parts;
  data::Batch batch;
  for (int64_t begin = 0; begin < indices.size(0); begin += kBatch) {
    data::gather(held_out_, indices.narrow(0, begin, std::min(kBatch, indices.size(0) - begin)), batch);
    const at::Tensor logits = method.predict(batch.x);
    const at::Tensor score = logits.size(1) == 2 ? logits.select(1, 1) - logits.select(1, 0) : at::Tensor();
    parts.push_back({logits.argmax(1), score, batch.y.clone()});
  }
  if (parts.empty()) parts.push_back({at::empty({0}, at::kLong), at::Tensor(), at::empty({0}, at::kLong)});
  return concatenate(parts);
}

ClientScore Evaluator::score(int64_t client, const std::function<Predictions(const at::Tensor&)>& predictions) const {
  const data::Shard shard = setup_.partition->shard(client);
  const int64_t classes = setup_.data.dataset.classes();
  const at::Tensor present = classes_present(setup_.data.dataset.train, shard.train, classes);
  const Predictions own = predictions(shard.test);

  ClientScore score;
  score.client = client;
  score.domain = shard.domain;
  score.records = shard.test.size(0);
  score.accuracy = accuracy(own);
  score.balanced_accuracy = balanced_accuracy(own);
  score.auroc = auroc(own);
  score.local_accuracy = accuracy(rows(own, present.index_select(0, own.truth).nonzero().squeeze(1)));
  if (!present.all().item<bool>()) {
    const at::Tensor sample_labels = held_out_.y.index_select(0, neighbour_sample_);
    const at::Tensor foreign = present.index_select(0, sample_labels).logical_not().nonzero().squeeze(1);
    score.neighbour_accuracy = accuracy(predictions(neighbour_sample_.index_select(0, foreign)));
  }
  return score;
}

void Evaluator::evaluate_global(const methods::Broadcast& broadcast, Evaluation& evaluation) {
  for (auto& worker : workers_) worker->select(broadcast, {});
  const int64_t chunks = (universe_.size(0) + kChunk - 1) / kChunk;
  std::vector<Predictions> parts(static_cast<size_t>(chunks));
  Progress progress("evaluating", chunks);
  parallel_in_order(
      chunks, static_cast<int>(workers_.size()),
      [&](int64_t chunk, int worker) {
        const int64_t begin = chunk * kChunk;
        parts[static_cast<size_t>(chunk)] =
            predict(*workers_[static_cast<size_t>(worker)],
                    universe_.narrow(0, begin, std::min(kChunk, universe_.size(0) - begin)));
        progress.advance();
      },
      [](int64_t) {});
  if (parts.empty()) return;
  const Predictions all = concatenate(parts);
  evaluation.global_accuracy = accuracy(all);
  evaluation.global_balanced_accuracy = balanced_accuracy(all);
  evaluation.global_auroc = auroc(all);
  if (setup_.method->personal(setup_.spec)) return;

  at::Tensor row_of = at::full({held_out_.size()}, -1, at::kLong);
  row_of.index_copy_(0, universe_, at::arange(universe_.size(0), at::kLong));
  for (const int64_t client : clients_) {
    evaluation.clients.push_back(
        score(client, [&](const at::Tensor& indices) { return rows(all, row_of.index_select(0, indices)); }));
  }
}

void Evaluator::evaluate_personal(const methods::Broadcast& broadcast, Evaluation& evaluation) {
  evaluation.clients.resize(clients_.size());
  Progress progress("evaluating", static_cast<int64_t>(clients_.size()));
  parallel_in_order(
      static_cast<int64_t>(clients_.size()), static_cast<int>(workers_.size()),
      [&](int64_t item, int worker) {
        methods::ClientMethod& method = *workers_[static_cast<size_t>(worker)];
        const int64_t client = clients_[static_cast<size_t>(item)];
        method.select(broadcast, states_.get(client));
        evaluation.clients[static_cast<size_t>(item)] =
            score(client, [&](const at::Tensor& indices) { return predict(method, indices); });
        progress.advance();
      },
      [](int64_t) {});
}

Evaluation Evaluator::evaluate(const methods::Broadcast& broadcast) {
  Evaluation evaluation;
  if (setup_.method->global(setup_.spec)) evaluate_global(broadcast, evaluation);
  if (setup_.method->personal(setup_.spec)) evaluate_personal(broadcast, evaluation);

  std::map<std::string, std::vector<double>> by_domain;
  for (const auto& client : evaluation.clients) {
    if (client.domain >= 0) {
      by_domain[setup_.data.dataset.domain_names[static_cast<size_t>(client.domain)]].push_back(client.accuracy);
    }
  }
  for (const auto& [domain, values] : by_domain) evaluation.domain_accuracy[domain] = spread(values).mean;
  return evaluation;
}

}  // namespace sotto::federation

#include "federation/evaluator.h"

#include "base/progress.h"
#include "base/random.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace sotto::federation {
namespace {

constexpr int64_t kChunk = 512;

}  // namespace

Workers make_workers(const Setup& setup, int threads) {
  Workers workers;
  for (int i = 0; i < threads; ++i) workers.push_back(setup.method().make_client(setup.client_context()));
  return workers;
}

Spread Evaluation::over(double ClientScore::*score) const {
  std::vector<double> values;
  values.reserve(clients.size());
  for (const auto& client : clients) values.push_back(client.*score);
  return spread(values);
}

std::vector<int64_t> evaluated_clients(const config::RunSpec& spec) {
  const int64_t all = spec.data.clients;
  const int64_t asked = spec.federation.eval_clients;
  const int64_t count = std::min(all, asked == 0 ? kMaxEvaluatedClients : asked);
  return RandomStream(spec.seed, "evaluated-clients").sample_without_replacement(all, count);
}

Evaluator::Evaluator(const Setup& setup, const HeldOut& held_out, Transport& transport)
    : setup_(setup), held_out_(held_out), transport_(transport), clients_(evaluated_clients(setup.spec())) {}

int64_t test_chunks(const HeldOut& held_out) {
  return (held_out.universe.size(0) + kChunk - 1) / kChunk;
}

at::Tensor test_chunk(const HeldOut& held_out, int64_t chunk) {
  const int64_t begin = chunk * kChunk;
  return held_out.universe.narrow(0, begin, std::min(kChunk, held_out.universe.size(0) - begin));
}

void Evaluator::evaluate_global(const methods::Broadcast& broadcast, Evaluation& evaluation) {
  const at::Tensor& universe = held_out_.universe;
  if (universe.size(0) == 0) return;
  const Predictions all = transport_.test(broadcast);
  evaluation.global_accuracy = accuracy(all);
  evaluation.global_balanced_accuracy = balanced_accuracy(all);
  evaluation.global_auroc = auroc(all);
  if (asks_clients()) return;

  at::Tensor row_of = at::full({held_out_.records.size()}, -1, at::kLong);
  row_of.index_copy_(0, universe, at::arange(universe.size(0), at::kLong));
  for (const int64_t client : clients_) {
    evaluation.clients.push_back(score_client(
        setup_, client, held_out_, [&](const at::Tensor& rows) { return select(all, row_of.index_select(0, rows)); }));
  }
}

// Validation records are at their clients, and so are personal models.
bool Evaluator::asks_clients() const {
  return setup_.method().personal(setup_.spec()) || setup_.spec().data.validation > 0;
}

void Evaluator::ask_clients(const methods::Broadcast& broadcast, Evaluation& evaluation) {
  Progress progress("evaluating", static_cast<int64_t>(clients_.size()));
  transport_.evaluate(clients_, broadcast, [&](ClientScore&& score) {
    evaluation.clients.push_back(score);
    progress.advance();
  });
}

Evaluation Evaluator::evaluate(const methods::Broadcast& broadcast) {
  Evaluation evaluation;
  if (setup_.method().global(setup_.spec())) evaluate_global(broadcast, evaluation);
  if (asks_clients()) ask_clients(broadcast, evaluation);

  std::map<std::string, std::vector<double>> by_domain;
  for (const auto& client : evaluation.clients) {
    if (client.domain >= 0) {
      by_domain[setup_.dataset().domain_names[static_cast<size_t>(client.domain)]].push_back(client.accuracy);
    }
  }
  for (const auto& [domain, values] : by_domain) evaluation.domain_accuracy[domain] = spread(values).mean;
  return evaluation;
}

}  // namespace sotto::federation

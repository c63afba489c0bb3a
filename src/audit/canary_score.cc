#include "audit/canary_score.h"

#include "audit/movement.h"
#include "base/parallel.h"
#include "base/progress.h"
#include "methods/parts/local_trainer.h"
#include "models/flat.h"
#include "privacy/ledger.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace sotto::audit {
namespace {

constexpr uint64_t kReplays = 8;  // of an upload without canaries: its mean, and how wide its noise is
constexpr double kExact = 1e-4;   // what has no noise is known to this share of what canaries change

using ByClient = std::map<int64_t, std::vector<size_t>>;

ByClient by_client(const std::vector<PlacedCanary>& canaries) {
  ByClient of_client;
  for (size_t i = 0; i < canaries.size(); ++i) of_client[canaries[i].client].push_back(i);
  return of_client;
}

class GradientScorer : public CanaryScorer {
 public:
  GradientScorer(const federation::Setup& setup, const std::vector<PlacedCanary>& canaries)
      : CanaryScorer(canaries.size()),
        setup_(setup),
        canaries_(canaries),
        model_(methods::initial_model(setup.public_context())),
        flat_(*model_),
        of_client_(by_client(canaries)) {
    model_->eval();
  }

  void start_from(const NamedTensors& broadcast) override {
    for (auto& [name, value] : model_->shared_parameters()) {
      if (const at::Tensor sent = find_tensor(broadcast, name); sent.defined()) value.detach().copy_(sent);
    }
  }

  void add(int64_t client, const NamedTensors& upload) override {
    const at::Tensor moved = movement(upload, model_->shared_parameters());
    for (const size_t i : of_client_[client]) {
      const at::Tensor gradient = gradient_of(canaries_[i]);
      const double norm = gradient.norm().item<double>();
      if (norm > 0) scores_[i] -= moved.dot(gradient).item<double>() / norm;
    }
  }

 private:
  at::Tensor gradient_of(const PlacedCanary& canary) {
    data::gather(setup_.dataset().train, at::tensor({canary.row}, at::kLong), batch_);
    flat_.zero_gradient();
    const at::Tensor label = at::tensor({canary.label}, at::kLong);
    at::cross_entropy_loss(model_->logits(batch_.x), label).backward();
    return flat_.shared_gradient();
  }

  const federation::Setup& setup_;
  const std::vector<PlacedCanary>& canaries_;
  std::shared_ptr<models::Model> model_;
  models::FlatParameters flat_;
  data::Batch batch_;
  ByClient of_client_;
};

// One tensor of a client's uploads.
struct Part {
  std::string name;
  at::Tensor mean;    // [n], without canaries
  double spread = 1;  // of its noise
};

// What is known of a client's uploads: estimates of its coins are `weights` times (parts side by side, minus their
// means, over their spreads).
struct Known {
  std::vector<Part> parts;
  at::Tensor weights;  // [canaries of the client, all numbers]
};

// The linear estimate of least error of coins that are 0 or 1 alike, from Σ coin·change + noise of variance one.
at::Tensor estimate_of_coins(const at::Tensor& changes) {
  constexpr double kCoinVariance = 0.25;
  const at::Tensor gram = changes.matmul(changes.t()) + at::eye(changes.size(0), at::kDouble) / kCoinVariance;
  return at::linalg_solve(gram, changes);
}

class ReplayScorer : public CanaryScorer {
 public:
  ReplayScorer(const federation::Setup& setup, const std::vector<PlacedCanary>& canaries, int threads)
      : CanaryScorer(canaries.size()), setup_(setup), canaries_(canaries), of_client_(by_client(canaries)) {
    first_ = setup.method().make_server(setup.public_context())->open();
    const std::vector<std::pair<int64_t, std::vector<size_t>>> clients(of_client_.begin(), of_client_.end());
    std::vector<Known> found(clients.size());
    Progress progress("what canaries change", static_cast<int64_t>(canaries.size()));
    parallel_in_order(
        std::ssize(clients), threads,
        [&](int64_t i, int) {
          const auto& [client, mine] = clients[static_cast<size_t>(i)];
          found[static_cast<size_t>(i)] = changes_in(client, mine);
        },
        [&](int64_t i) { progress.advance(std::ssize(clients[static_cast<size_t>(i)].second)); });
    for (size_t i = 0; i < clients.size(); ++i) known_[clients[i].first] = std::move(found[i]);
  }

  void start_from(const NamedTensors&) override {}

  void add(int64_t client, const NamedTensors& upload) override {
    const Known& known = known_[client];
    std::vector<at::Tensor> values;
    for (const Part& part : known.parts) {
      const at::Tensor sent = find_tensor(upload, part.name);
      if (!sent.defined() || sent.numel() != part.mean.numel()) return;
      values.push_back((sent.reshape({-1}).to(at::kDouble) - part.mean) / part.spread);
    }
    if (values.empty()) return;
    const at::Tensor coins = known.weights.mv(at::cat(values));
    const std::vector<size_t>& mine = of_client_[client];
    for (size_t i = 0; i < mine.size(); ++i) scores_[mine[i]] += coins[static_cast<int64_t>(i)].item<double>();
  }

 private:
  Known changes_in(int64_t client, const std::vector<size_t>& mine) const {
    data::Records train = setup_.dataset().train;
    at::Tensor& labels = train.y;
    labels = labels.clone();
    const auto method = setup_.method().make_client({setup_.public_context(), train});
    const data::Shard shard = setup_.partition().shard(client);
    const auto upload = [&](uint64_t seed) {
      privacy::Ledger ledger;
      privacy::PrivateState state;
      methods::StepContext context{.seed = setup_.spec().seed,
                                   .release = {.ledger = ledger, .round = 1, .client = client, .seed = seed},
                                   .own = setup_.facts_of(client)};
      context.own.participations = std::max<int64_t>(1, context.own.participations);
      const auto result = method->step(first_, shard, state, context);
      return result.upload ? clone(result.upload->values()) : NamedTensors();
    };

    std::vector<NamedTensors> without, with;
    for (uint64_t seed = 0; seed < kReplays; ++seed) without.push_back(upload(seed));
    for (const size_t i : mine) {
      const PlacedCanary& canary = canaries_[i];
      const int64_t own = labels[canary.row].item<int64_t>();
      labels[canary.row] = canary.label;
      with.push_back(upload(0));
      labels[canary.row] = own;
    }
    Known known;
    std::vector<at::Tensor> changes;
    for (const NamedTensor& tensor : without.front()) {
      const at::Tensor before = rows_of(without, tensor), after = rows_of(with, tensor);
      if (!before.defined() || !after.defined()) continue;
      const at::Tensor change = after - before[0];
      const double noise = std::sqrt(before.var(0).mean().item<double>());
      const double spread = std::max(noise, kExact * change.abs().max().item<double>());
      if (spread == 0) continue;
      known.parts.push_back({tensor.name, before.mean(0), spread});
      changes.push_back(change / spread);
    }
    if (!changes.empty()) known.weights = estimate_of_coins(at::cat(changes, 1));
    return known;
  }

  // One row an upload; undefined if some do not have the tensor, or there is nothing in it.
  static at::Tensor rows_of(const std::vector<NamedTensors>& uploads, const NamedTensor& like) {
    std::vector<at::Tensor> rows;
    for (const NamedTensors& upload : uploads) {
      const at::Tensor value = find_tensor(upload, like.name);
      if (!value.defined() || value.numel() != like.value.numel() || value.numel() == 0) return {};
      rows.push_back(value.reshape({-1}).to(at::kDouble));
    }
    return at::stack(rows);
  }

  const federation::Setup& setup_;
  const std::vector<PlacedCanary>& canaries_;
  ByClient of_client_;
  methods::Broadcast first_;
  std::map<int64_t, Known> known_;
};

bool sends_models(const federation::Setup& setup) {
  if (!setup.method().uses_model) return false;
  const methods::Broadcast first = setup.method().make_server(setup.public_context())->open();
  const NamedTensors parameters = methods::initial_model(setup.public_context())->shared_parameters();
  return std::any_of(parameters.begin(), parameters.end(),
                     [&](const NamedTensor& parameter) { return find_tensor(first.values, parameter.name).defined(); });
}

}  // namespace

std::unique_ptr<CanaryScorer> make_canary_scorer(const federation::Setup& setup,
                                                 const std::vector<PlacedCanary>& canaries, int threads) {
  if (sends_models(setup)) return std::make_unique<GradientScorer>(setup, canaries);
  return std::make_unique<ReplayScorer>(setup, canaries, threads);
}

}  // namespace sotto::audit

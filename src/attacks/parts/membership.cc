#include "attacks/parts/membership.h"

#include "base/error.h"
#include "base/files.h"
#include "base/parallel.h"
#include "base/progress.h"
#include "base/random.h"
#include "data/record_ops.h"
#include "federation/state_store.h"
#include "io/safetensors.h"
#include "privacy/ledger.h"
#include "transport/simulation.h"

#include <ATen/ATen.h>
#include <torch/optim/adam.h>

#include <cmath>

namespace sotto::attacks {
namespace {

constexpr int64_t kHidden = 64;
constexpr int kAttackSteps = 200;
constexpr double kAttackRate = 0.01;
constexpr double kLeastVariance = 1e-4;

// A federation of one client that holds `rows` of the records: the logits of its model for all of them.
at::Tensor train_shadow(const federation::Setup& setup, const data::Records& records, const at::Tensor& rows,
                        uint64_t seed) {
  config::RunSpec spec = setup.spec();
  spec.seed = seed;
  spec.data.clients = 1;
  spec.data.partition = "iid";
  spec.data.train_fraction = 1;
  spec.federation.cohort = 0;
  spec.federation.eval_every = spec.rounds;
  auto data = std::make_shared<models::TaskData>(setup.data());
  data->dataset.train = data::select_records(records, rows);
  data->dataset.test = records;
  const federation::Setup shadow(spec, std::move(data));
  privacy::Ledger ledger;
  const auto states = federation::make_memory_store({});
  transport::Simulation simulation(shadow, *states, ledger);
  while (simulation.next_round()) {
  }
  const auto client = shadow.method().make_client(shadow.client_context());
  client->select(simulation.broadcast(), states->get(0));
  return predict_all(*client, records);
}

std::string fingerprint(const federation::Setup& setup, const data::Records& records, const ShadowOptions& options) {
  const at::Tensor bytes = records.x.contiguous();
  const std::string_view content(static_cast<const char*>(bytes.data_ptr()), bytes.nbytes());
  return sha256(fmt::format("{} {} {} {}", setup.spec().hash(), sha256(content), options.shadows, options.seed));
}

std::optional<Shadows> cached(const ShadowOptions& options, const std::string& key) {
  if (options.cache.empty() || !fs::exists(options.cache)) return std::nullopt;
  const io::SafeTensors file = io::read_safetensors(options.cache);
  const auto found = file.metadata.find("key");
  if (found == file.metadata.end() || found->second != key) return std::nullopt;
  return Shadows{find_tensor(file.tensors, "logits").clone(), find_tensor(file.tensors, "held").clone()};
}

// Two layers, one output.
struct AttackNetwork {
  AttackNetwork(int64_t inputs, RandomStream& stream) {
    at::Generator generator = stream.torch_generator();
    const auto make = [&](int64_t rows, int64_t columns) {
      at::Tensor weight = at::empty({rows, columns}, at::kFloat);
      weight.normal_(0, std::sqrt(2.0 / static_cast<double>(columns)), generator);
      return weight.requires_grad_();
    };
    parameters = {make(kHidden, inputs), at::zeros({kHidden}).requires_grad_(), make(1, kHidden),
                  at::zeros({1}).requires_grad_()};
  }

  at::Tensor operator()(const at::Tensor& x) const {
    const at::Tensor hidden = at::relu(at::linear(x, parameters[0], parameters[1]));
    return at::linear(hidden, parameters[2], parameters[3]).squeeze(1);
  }

  std::vector<at::Tensor> parameters;
};

}  // namespace

Shadows train_shadows(const federation::Setup& setup, const data::Records& records, const ShadowOptions& options) {
  const std::string key = fingerprint(setup, records, options);
  if (auto known = cached(options, key)) return *known;
  const int64_t count = records.size();
  Shadows shadows;
  shadows.held = at::zeros({options.shadows, count}, at::kBool);
  std::vector<at::Tensor> logits(static_cast<size_t>(options.shadows));
  for (int64_t s = 0; s < options.shadows; ++s) {
    RandomStream stream(options.seed, "shadow-records", 0, static_cast<uint64_t>(s));
    shadows.held[s].index_fill_(0, at::tensor(stream.sample_without_replacement(count, count / 2), at::kLong), true);
  }
  Progress progress("shadow models", options.shadows);
  parallel_in_order(
      options.shadows, options.threads,
      [&](int64_t s, int) {
        const at::Tensor rows = shadows.held[s].nonzero().squeeze(1).contiguous();
        logits[static_cast<size_t>(s)] =
            train_shadow(setup, records, rows, options.seed * 1000003 + static_cast<uint64_t>(s)).to(at::kFloat);
      },
      [&](int64_t) { progress.advance(); });
  shadows.logits = at::stack(logits);
  if (!options.cache.empty()) {
    io::SafeTensors file;
    file.tensors.push_back({"logits", shadows.logits});
    file.tensors.push_back({"held", shadows.held});
    file.metadata["key"] = key;
    io::write_safetensors(options.cache, file);
  }
  return shadows;
}

at::Tensor scaled_confidence(const at::Tensor& logits, const at::Tensor& labels) {
  const at::Tensor values = logits.to(at::kDouble);
  std::vector<int64_t> shape = values.sizes().vec();
  shape.back() = 1;
  const at::Tensor index = labels.reshape({-1, 1}).expand(shape);
  const at::Tensor own = values.gather(-1, index);
  const at::Tensor rest = values.scatter(-1, index, -std::numeric_limits<double>::infinity()).logsumexp(-1, true);
  return (own - rest).squeeze(-1).clamp(-60, 60);
}

Scores lira_scores(const Shadows& shadows, const at::Tensor& target, const at::Tensor& labels, int64_t members) {
  const at::Tensor confidence = scaled_confidence(shadows.logits, labels);
  const at::Tensor in = shadows.held.to(at::kDouble), out = 1 - in;
  // One variance for all records: few shadows would not give each its own.
  const auto fit = [&](const at::Tensor& weight) {
    const at::Tensor mean = (confidence * weight).sum(0) / weight.sum(0).clamp_min(1);
    const double variance = ((confidence - mean).square() * weight).sum().item<double>() / weight.sum().item<double>();
    return std::pair{mean, std::max(variance, kLeastVariance)};
  };
  const auto [mean_in, variance_in] = fit(in);
  const auto [mean_out, variance_out] = fit(out);
  const at::Tensor seen = scaled_confidence(target, labels);
  const at::Tensor score =
      (seen - mean_out).square() / (2 * variance_out) - (seen - mean_in).square() / (2 * variance_in);
  return by_membership(score, members);
}

ShadowAttack shadow_scores(const Shadows& shadows, const at::Tensor& target, const at::Tensor& labels, int64_t members,
                           uint64_t seed) {
  const int64_t classes = target.size(1);
  const at::Tensor known = shadows.logits.softmax(-1).reshape({-1, classes});
  const at::Tensor held = shadows.held.reshape({-1}).to(at::kFloat);
  const at::Tensor of = labels.repeat({shadows.logits.size(0)});
  const at::Tensor asked = target.to(at::kFloat).softmax(-1);
  at::Tensor scores = at::zeros({target.size(0)}, at::kDouble);
  for (int64_t label = 0; label < classes; ++label) {
    const at::Tensor rows = (of == label).nonzero().squeeze(1), wanted = (labels == label).nonzero().squeeze(1);
    if (rows.size(0) == 0 || wanted.size(0) == 0) continue;
    RandomStream stream(seed, "attack-network", 0, static_cast<uint64_t>(label));
    AttackNetwork network(classes, stream);
    torch::optim::Adam optimizer(network.parameters, torch::optim::AdamOptions(kAttackRate));
    const at::Tensor x = known.index_select(0, rows), y = held.index_select(0, rows);
    for (int step = 0; step < kAttackSteps; ++step) {
      optimizer.zero_grad();
      at::binary_cross_entropy_with_logits(network(x), y).backward();
      optimizer.step();
    }
    scores.index_copy_(0, wanted, network(asked.index_select(0, wanted)).detach().to(at::kDouble));
  }
  ShadowAttack attack{.scores = by_membership(scores, members)};
  double right = 0;
  for (const double score : attack.scores.members) right += score > 0 ? 1 : 0;
  for (const double score : attack.scores.others) right += score > 0 ? 0 : 1;
  attack.success_rate = right / static_cast<double>(target.size(0));
  return attack;
}

}  // namespace sotto::attacks

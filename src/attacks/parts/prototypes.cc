#include "attacks/parts/prototypes.h"

#include "artifacts/trained_model.h"
#include "base/error.h"
#include "methods/prototypes/prototype_member.h"
#include "methods/prototypes/prototype_model.h"

#include <ATen/ATen.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <any>
#include <limits>

namespace sotto::attacks {
namespace {

// Whether prototypes come from encoders that clients have trained.
bool trained_encoder(const federation::Setup& setup) {
  return setup.spec().as_printed();
}

// Whether what the rounds after it did to the client's encoder is known without running them again.
bool is_last(const federation::Setup& setup, int64_t round) {
  return round == setup.spec().rounds;
}

// The round that is attacked: a public encoder is the same in all of them, a trained one has seen most before the last.
int64_t round_of(const Target& target, int64_t client, int64_t asked) {
  if (asked != 0) return asked;
  if (!trained_encoder(target.setup())) return 1;
  const int64_t last = target.last_upload(client);
  return last != 0 ? last : target.setup().spec().rounds;
}

// The model whose weights these are: what [model] and the weights' shapes say of it.
std::shared_ptr<models::Model> encoder_with(const federation::Setup& setup, const NamedTensors& weights, int64_t width,
                                            int64_t client) {
  methods::PrototypeModelOptions options;
  options.encoder = setup.spec().model;
  options.width = width;
  options.hidden.clear();
  for (size_t layer = 1;; ++layer) {
    const at::Tensor weight = find_tensor(weights, fmt::format("head.fc{}.weight", layer));
    if (!weight.defined()) break;
    options.hidden.push_back(weight.size(0));
  }
  options.trained_projection = find_tensor(weights, "projection.weight").defined();
  options.prior = find_tensor(weights, "prior_scale").defined();
  if (const auto& blocks = setup.data().feature_blocks; blocks.size() > 1) {
    const auto own = static_cast<size_t>(client) % blocks.size();
    for (size_t b = 0; b < own; ++b) options.first_column += blocks[b];
    options.columns = blocks[own];
  }
  auto model = std::make_shared<methods::PrototypeModel>(options, setup.data().task, setup.spec().seed);
  for (auto& [name, value] : model->state()) {
    if (const at::Tensor known = find_tensor(weights, name); known.defined()) value.detach().copy_(known);
  }
  model->eval();
  return model;
}

void check(const federation::Setup& setup, const PrototypeTarget& found, int64_t client) {
  data::Batch batch;
  const at::Tensor rows = setup.partition().shard(client).train.contiguous();
  data::gather(setup.dataset().train, rows.narrow(0, 0, std::min<int64_t>(rows.size(0), 4)), batch);
  const at::NoGradGuard no_gradient;
  if (!at::allclose(found.encoder->features(batch.x), found.features(batch.x), 1e-3, 1e-4)) {
    fail_user(
        "attack: features are centred or scaled before they are released; run without method.centre and "
        "method.normalise");
  }
}

PrototypeTable table_in(const federation::Setup& setup, const NamedTensors& upload, int64_t round) {
  const auto* choice = std::any_cast<methods::PrototypeChoice>(&setup.spec().options);
  if (choice != nullptr && choice->options.encoder == methods::EncoderTraining::kDpSgd) {
    fail_user("attack: with method.encoder = \"dp-sgd\" nobody but the client has its encoder");
  }
  PrototypeTable table = prototypes_in(upload, setup.data().task.classes);
  if (!table.values.defined()) fail_user("attack: '{}' uploads no prototypes in round {}", setup.spec().method, round);
  return table;
}

// The client's model as it was after a round: the one that is kept, or, before the last round, made again. `sent` is what
// the client sent in it.
std::shared_ptr<artifacts::TrainedModel> model_after(const Target& target, int64_t client, int64_t round,
                                                     const PrototypeTable& sent, int threads) {
  const federation::Setup& setup = target.setup();
  if (is_last(setup, round)) return std::make_shared<artifacts::TrainedModel>(target.folder(), client);
  const auto& privacy = setup.spec().privacy;
  if (privacy && privacy->generator == privacy::Generator::kSecure) {
    fail_user(
        "attack: the encoder of round {} is not kept, and with privacy.noise = \"secure\" it cannot be made again",
        round);
  }
  const Rerun then = rerun(setup, client, round, threads);
  const PrototypeTable again = prototypes_in(then.upload, setup.data().task.classes);
  if (!again.values.defined() || again.values.sizes() != sent.values.sizes() ||
      !at::allclose(again.values, sent.values, 1e-3, 1e-4)) {
    fail_user("attack: run again, round {} sends something else than {} has recorded; run it anew with this version",
              round, target.folder().string());
  }
  return std::make_shared<artifacts::TrainedModel>(setup, then.broadcast, then.state, client, "", round);
}

}  // namespace

PrototypeTable prototypes_in(const NamedTensors& upload, int64_t classes) {
  PrototypeTable table;
  if (table.values = find_tensor(upload, "prototypes"); table.values.defined()) {
    table.classes = find_tensor(upload, "classes");
  } else {
    const at::Tensor sums = find_tensor(upload, "sums"), counts = find_tensor(upload, "counts");
    if (!sums.defined() || !counts.defined()) return {};
    table.values = sums / counts.to(sums.scalar_type()).clamp_min(1).unsqueeze(1);
  }
  table.values = table.values.to(at::kFloat);
  const int64_t rows = table.values.size(0);
  if (table.classes.defined()) {
    table.classes = table.classes.to(at::kLong);
  } else {
    SOTTO_INVARIANT(rows % classes == 0);
    table.classes = at::arange(rows, at::kLong).div(rows / classes, "floor");
  }
  const at::Tensor held = table.values.abs().sum(1).nonzero().squeeze(1);
  return {table.values.index_select(0, held), table.classes.index_select(0, held)};
}

at::Tensor prototype_scores(const at::Tensor& features, const at::Tensor& labels, const PrototypeTable& table) {
  const at::Tensor distances = at::cdist(features.to(at::kDouble), table.values.to(at::kDouble)).square();
  const at::Tensor others = labels.unsqueeze(1) != table.classes.unsqueeze(0);
  return -distances.masked_fill(others, std::numeric_limits<double>::infinity()).amin(1);
}

PrototypeTarget prototypes_of(const Target& target, int64_t client, int64_t asked, int threads) {
  const federation::Setup& setup = target.setup();
  const int64_t round = round_of(target, client, asked);
  PrototypeTarget found;
  found.table = table_in(setup, target.upload(round, client), round);
  const auto trained =
      model_after(target, client, trained_encoder(setup) ? round : setup.spec().rounds, found.table, threads);
  found.predict = [trained](const at::Tensor& x) { return trained->predict(x); };
  NamedTensors weights = clone(trained->weights());
  if (trained_encoder(setup)) {
    found.features = [trained](const at::Tensor& x) { return trained->features(x); };
  } else {
    const std::shared_ptr<methods::ClientMethod> untouched = setup.method().make_client(setup.client_context());
    untouched->select(target.last_broadcast(), {});
    found.features = [untouched](const at::Tensor& x) { return untouched->features(x); };
    weights = clone(untouched->selected_weights());
  }
  found.encoder = encoder_with(setup, weights, found.table.values.size(1), client);
  check(setup, found, client);
  return found;
}

PrototypeTarget prototypes_without_privacy(const Target& target, int64_t client, int64_t asked, int threads) {
  const auto setup = without_privacy(target.setup());
  const int64_t round = round_of(target, client, asked);
  const Rerun sent = rerun(setup, client, round, threads);
  const bool as_it_was = trained_encoder(setup) || is_last(setup, round);
  const Rerun last = as_it_was ? sent : rerun(setup, client, setup.spec().rounds, threads);
  PrototypeTarget found;
  found.table = table_in(setup, sent.upload, round);
  const auto selected = [&](const privacy::PrivateState& state) {
    std::shared_ptr<methods::ClientMethod> method = setup.method().make_client(setup.client_context());
    method->select(last.broadcast, state);
    return method;
  };
  const auto trained = selected(last.state);
  const auto source = trained_encoder(setup) ? trained : selected({});
  // The method looks at the setup for as long as it lives.
  found.predict = [setup, trained](const at::Tensor& x) { return trained->predict(x); };
  found.features = [setup, source](const at::Tensor& x) { return source->features(x); };
  found.encoder = encoder_with(setup, source->selected_weights(), found.table.values.size(1), client);
  check(setup, found, client);
  return found;
}

}  // namespace sotto::attacks

#include "attacks/target.h"

#include "artifacts/trained_model.h"
#include "base/error.h"
#include "base/random.h"
#include "config/load.h"
#include "data/record_ops.h"
#include "federation/state_store.h"
#include "io/safetensors.h"
#include "methods/catalogue.h"
#include "transport/simulation.h"

#include <ATen/ATen.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>

namespace sotto::attacks {
namespace {

constexpr int64_t kBatch = 256;

at::Tensor predict_with(const std::function<at::Tensor(const at::Tensor&)>& predict, const data::Records& records) {
  std::vector<at::Tensor> parts;
  data::Batch batch;
  for (int64_t first = 0; first < records.size(); first += kBatch) {
    data::gather(records, at::arange(first, std::min(records.size(), first + kBatch), at::kLong), batch);
    parts.push_back(predict(batch.x).detach().clone());
  }
  return at::cat(parts);
}

// Some methods have no form without privacy, or none with these options.
std::optional<federation::Setup> in_the_clear(const federation::Setup& setup, const config::RunSpec& spec,
                                              methods::Variant variant, const nlohmann::json& options) {
  try {
    federation::Setup plain = setup.with(config::with_method(spec, spec.method, variant, options));
    const methods::ReleasePlan plan = plain.plan_for(0);
    const bool clear = std::all_of(plan.begin(), plan.end(), [](const privacy::Channel& channel) {
      return channel.terms().mechanism == privacy::kClearMechanism;
    });
    if (clear && !plan.empty()) return plain;
  } catch (const UserError&) {
    // It has no such form.
  }
  return std::nullopt;
}

std::vector<int64_t> sample(const std::vector<int64_t>& rows, int64_t count, RandomStream& stream) {
  std::vector<int64_t> chosen;
  for (const int64_t i : stream.sample_without_replacement(static_cast<int64_t>(rows.size()), count)) {
    chosen.push_back(rows[static_cast<size_t>(i)]);
  }
  return chosen;
}

std::filesystem::path upload_file(const std::filesystem::path& run, int64_t round, int64_t client) {
  return run / "uploads" / fmt::format("round_{:06}", round) / fmt::format("client_{:06}.safetensors", client);
}

void append(std::vector<int64_t>& rows, const at::Tensor& more) {
  for (int64_t i = 0; i < more.size(0); ++i) rows.push_back(more[i].item<int64_t>());
}

}  // namespace

Target::Target(const std::filesystem::path& run_folder) : folder_(run_folder) {
  setup_ = std::make_shared<const federation::Setup>(artifacts::RunReader(run_folder).spec());
}

NamedTensors Target::upload(int64_t round, int64_t client) const {
  const auto file = upload_file(folder_, round, client);
  if (!std::filesystem::exists(file)) {
    fail_user("{} is not there: uploads are recorded with --set record.uploads=true, of clients that took part",
              file.string());
  }
  return io::read_safetensors(file).tensors;
}

int64_t Target::last_upload(int64_t client) const {
  int64_t round = setup_->spec().rounds;
  while (round > 0 && !std::filesystem::exists(upload_file(folder_, round, client))) --round;
  return round;
}

methods::Broadcast Target::last_broadcast() const {
  const auto checkpoint = artifacts::RunReader(folder_).last_checkpoint(setup_->spec());
  if (!checkpoint) fail_user("{} has no checkpoint yet; run it first", folder_.string());
  return checkpoint->broadcast;
}

NamedTensors Target::weights() const {
  return clone(artifacts::TrainedModel(folder_, std::nullopt).weights());
}

at::Tensor Target::logits(const data::Records& records, std::optional<int64_t> client) const {
  const artifacts::TrainedModel model(folder_, client);
  return predict_with([&](const at::Tensor& x) { return model.predict(x); }, records);
}

federation::Setup without_privacy(const federation::Setup& setup) {
  if (!setup.spec().privacy) return setup;
  config::RunSpec spec = setup.spec();
  spec.privacy.reset();
  const nlohmann::json own = nlohmann::json::parse(spec.method_options);
  nlohmann::json no_mechanism = own;
  no_mechanism["mechanism"] = "none";
  for (const nlohmann::json& options : {own, no_mechanism}) {
    for (const methods::Variant variant : {spec.variant, methods::Variant::kSound}) {
      if (auto plain = in_the_clear(setup, spec, variant, options)) return *plain;
    }
  }
  return setup.with(config::with_method(spec, "fedavg", methods::Variant::kSound, nlohmann::json::object()));
}

at::Tensor predict_all(methods::ClientMethod& method, const data::Records& records) {
  return predict_with([&](const at::Tensor& x) { return method.predict(x); }, records);
}

at::Tensor inputs_of(const data::Records& records) {
  data::Batch batch;
  data::gather(records, at::arange(records.size(), at::kLong), batch);
  return batch.x;
}

Rerun rerun(const federation::Setup& setup, int64_t client, int64_t round, int threads) {
  config::RunSpec spec = setup.spec();
  spec.federation.eval_every = spec.rounds;
  spec.federation.eval_clients = 1;
  privacy::Ledger ledger;
  const auto states = federation::make_memory_store({});
  Rerun last;
  const auto watch = [&](int64_t at, const federation::Reply& reply) {
    if (at == round && reply.client == client && reply.upload) last.upload = clone(reply.upload->values());
  };
  transport::Simulation simulation(setup.with(spec), *states, ledger, {.threads = threads, .watcher = watch});
  while (simulation.broadcast().round < round && simulation.next_round()) {
  }
  last.broadcast = {simulation.broadcast().round, clone(simulation.broadcast().values)};
  last.state = states->get(client);
  return last;
}

std::unique_ptr<methods::ClientMethod> model_after_running(const federation::Setup& setup,
                                                           std::optional<int64_t> client, int threads) {
  const Rerun last = rerun(setup, client.value_or(0), setup.spec().rounds, threads);
  auto method = setup.method().make_client(setup.client_context());
  method->select(last.broadcast, client ? last.state : privacy::PrivateState());
  return method;
}

Membership members_and_others(const federation::Setup& setup, std::optional<int64_t> client, int64_t limit,
                              uint64_t seed) {
  std::vector<int64_t> members, others;
  const data::Dataset& dataset = setup.dataset();
  bool in_train = false;
  for (int64_t i = 0; i < setup.spec().data.clients; ++i) {
    if (setup.participations_of(i) == 0) continue;
    const data::Shard shard = setup.partition().shard(i);
    if (client && i != *client) continue;
    append(members, shard.train);
    append(others, shard.test);
    in_train = shard.test_in_train;
  }
  for (auto* rows : {&members, &others}) {
    std::sort(rows->begin(), rows->end());
    rows->erase(std::unique(rows->begin(), rows->end()), rows->end());
  }
  const auto count =
      std::min<int64_t>({limit, static_cast<int64_t>(members.size()), static_cast<int64_t>(others.size())});
  if (count < 2) {
    fail_user("attack: there are {} records that were trained on and {} that were not; at least two of each are needed",
              members.size(), others.size());
  }
  RandomStream stream(seed, "attack-records");
  const data::Records parts[] = {
      data::select_records(dataset.train, at::tensor(sample(members, count, stream), at::kLong)),
      data::select_records(in_train ? dataset.train : dataset.test,
                           at::tensor(sample(others, count, stream), at::kLong))};
  return {data::concat_records(parts), count};
}

}  // namespace sotto::attacks

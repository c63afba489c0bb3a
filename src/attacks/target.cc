#include "attacks/target.h"

#include "artifacts/trained_model.h"
#include "base/error.h"
#include "base/random.h"
#include "base/safetensors.h"
#include "config/load.h"
#include "data/record_ops.h"
#include "federation/loop.h"
#include "federation/state_store.h"
#include "methods/catalogue.h"

#include <ATen/ATen.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>

namespace sotto::attacks {
namespace {

constexpr int64_t kBatch = 256;

class LastWords : public federation::RunSink {
 public:
  LastWords(int64_t round, int64_t client) : round_(round), client_(client) {}

  void upload(int64_t round, int64_t client, const privacy::Upload& upload) override {
    if (round == round_ && client == client_) found.upload = clone(upload.values());
  }
  void round(const federation::RoundRecord&) override {}
  void checkpoint(const federation::Checkpoint& point) override {
    found.broadcast = {point.broadcast.round, clone(point.broadcast.values)};
  }

  Rerun found;

 private:
  int64_t round_, client_;
};

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
bool runs_in_the_clear(const federation::Setup& setup) {
  try {
    const methods::ReleasePlan plan = setup.plan_for(0);
    return !plan.empty() && std::all_of(plan.begin(), plan.end(), [](const methods::PlannedRelease& release) {
      return release.event.mechanism == privacy::kClearMechanism;
    });
  } catch (const UserError&) {
    return false;
  }
}

std::vector<int64_t> sample(const std::vector<int64_t>& rows, int64_t count, RandomStream& stream) {
  std::vector<int64_t> chosen;
  for (const int64_t i : stream.sample_without_replacement(static_cast<int64_t>(rows.size()), count)) {
    chosen.push_back(rows[static_cast<size_t>(i)]);
  }
  return chosen;
}

void append(std::vector<int64_t>& rows, const at::Tensor& more) {
  for (int64_t i = 0; i < more.size(0); ++i) rows.push_back(more[i].item<int64_t>());
}

}  // namespace

Target::Target(const std::filesystem::path& run_folder) : folder_(run_folder) {
  const artifacts::RunReader reader(run_folder);
  setup_ = std::make_shared<const federation::Setup>(federation::prepare(config::parse_run_spec(
      reader.config_toml(), (run_folder / "config.toml").string(), {}, methods::method_reader())));
}

NamedTensors Target::upload(int64_t round, int64_t client) const {
  const auto file =
      folder_ / "uploads" / fmt::format("round_{:06}", round) / fmt::format("client_{:06}.safetensors", client);
  if (!std::filesystem::exists(file)) {
    fail_user("{} is not there: uploads are recorded with --set record.uploads=true, of clients that took part",
              file.string());
  }
  return read_safetensors(file).tensors;
}

methods::Broadcast Target::last_broadcast() const {
  const auto checkpoint = artifacts::RunReader(folder_).last_checkpoint(setup_->spec.hash());
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

std::shared_ptr<const federation::Setup> without_privacy(const federation::Setup& setup) {
  auto plain = std::make_shared<federation::Setup>();
  plain->spec = setup.spec;
  plain->data = setup.data;
  plain->method = setup.method;
  plain->partition = data::make_partition(plain->spec.data, plain->data.dataset, plain->spec.seed);
  plain->participations = setup.participations;
  if (!setup.spec.privacy) return plain;
  plain->spec.privacy.reset();
  nlohmann::json in_the_clear = nlohmann::json::parse(setup.spec.method_options);
  in_the_clear["mechanism"] = "none";
  for (const std::string& options : {setup.spec.method_options, in_the_clear.dump()}) {
    for (const std::string& variant : {setup.spec.variant, std::string("sound")}) {
      plain->spec.method_options = options;
      plain->spec.variant = variant;
      if (runs_in_the_clear(*plain)) return plain;
    }
  }
  plain->spec.method = "fedavg";
  plain->spec.variant = "sound";
  plain->spec.method_options = "{}";
  plain->method = &methods::find_method(plain->spec.method);
  return plain;
}

at::Tensor predict_all(methods::ClientMethod& method, const data::Records& records) {
  return predict_with([&](const at::Tensor& x) { return method.predict(x); }, records);
}

Rerun rerun(const federation::Setup& setup, int64_t client, int64_t round, int threads) {
  federation::Setup run;
  run.spec = setup.spec;
  run.spec.record = {.uploads = true, .checkpoint_every = setup.spec.rounds};
  run.spec.federation.eval_every = setup.spec.rounds;
  run.spec.federation.eval_clients = 1;
  run.data = setup.data;
  run.method = setup.method;
  run.partition = data::make_partition(run.spec.data, run.data.dataset, run.spec.seed);
  run.participations = setup.participations;
  privacy::Ledger ledger;
  LastWords last(round, client);
  const auto states = federation::make_memory_store({});
  federation::run_rounds(run, {*states, ledger, last, threads}, std::nullopt);
  last.found.state = states->get(client);
  return std::move(last.found);
}

std::unique_ptr<methods::ClientMethod> model_after_running(const federation::Setup& setup,
                                                           std::optional<int64_t> client, int threads) {
  const Rerun last = rerun(setup, client.value_or(0), setup.spec.rounds, threads);
  auto method = setup.method->make_client(setup.context());
  method->select(last.broadcast, client ? last.state : privacy::PrivateState());
  return method;
}

Membership members_and_others(const federation::Setup& setup, std::optional<int64_t> client, int64_t limit,
                              uint64_t seed) {
  std::vector<int64_t> members, others;
  const data::Dataset& dataset = setup.data.dataset;
  bool in_train = false;
  for (int64_t i = 0; i < setup.spec.data.clients; ++i) {
    if (setup.participations[static_cast<size_t>(i)] == 0) continue;
    const data::Shard shard = setup.partition->shard(i);
    if (!client || i == *client) append(members, shard.train);
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

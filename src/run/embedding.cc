#include "run/embedding.h"

#include "artifacts/trained_model.h"
#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/parallel.h"
#include "base/random.h"
#include "federation/state_store.h"
#include "privacy/ledger.h"
#include "report/t_sne.h"
#include "transport/simulation.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace sotto::run {
namespace {

using nlohmann::json;

constexpr int64_t kMostClients = 10;

// Held-out records, dealt evenly to clients.
struct Sample {
  std::vector<int64_t> clients;
  std::vector<data::Batch> batches;
};

Sample sample_of(const federation::Setup& setup, int64_t records) {
  const data::Dataset& dataset = setup.dataset();
  Sample sample;
  const int64_t clients = std::min(setup.spec().data.clients, kMostClients);
  for (int64_t client = 0; client < clients; ++client) {
    const data::Shard shard = setup.partition().shard(client);
    if (shard.test.numel() == 0) continue;
    RandomStream stream(setup.spec().seed, "embedded-records", 0, static_cast<uint64_t>(client));
    const auto rows = stream.sample_without_replacement(
        shard.test.numel(), std::min(shard.test.numel(), std::max<int64_t>(1, records / clients)));
    data::Batch batch;
    data::gather(shard.test_in_train ? dataset.train : dataset.test,
                 shard.test.index_select(0, at::tensor(rows, at::kLong)), batch);
    sample.clients.push_back(client);
    sample.batches.push_back({batch.x.clone(), batch.y.clone()});
  }
  if (sample.clients.empty()) fail_user("no client of this run has held-out records");
  return sample;
}

// One tensor per client of the sample.
std::vector<at::Tensor> features_after_last_round(const fs::path& run_folder, const Sample& sample) {
  std::vector<at::Tensor> features;
  for (size_t i = 0; i < sample.clients.size(); ++i) {
    features.push_back(artifacts::TrainedModel(run_folder, sample.clients[i]).features(sample.batches[i].x));
  }
  return features;
}

// A run depends on its settings alone: its first round can be had again.
std::vector<at::Tensor> features_after_first_round(const federation::Setup& setup, const Sample& sample) {
  const auto states = federation::make_memory_store({});
  privacy::Ledger ledger;
  transport::Simulation again(setup, *states, ledger, {.threads = available_threads()});
  again.next_round();
  const auto method = setup.method().make_client(setup.client_context());
  std::vector<at::Tensor> features;
  for (size_t i = 0; i < sample.clients.size(); ++i) {
    method->select(again.broadcast(), states->get(sample.clients[i]));
    features.push_back(method->features(sample.batches[i].x));
  }
  return features;
}

FeaturePicture place(const std::string& title, const at::Tensor& features, const Sample& sample,
                     const federation::Setup& setup) {
  FeaturePicture picture;
  picture.title = title;
  picture.classes = setup.dataset().class_names;
  const at::Tensor points = report::t_sne(features);
  for (int64_t i = 0; i < points.size(0); ++i) {
    picture.x.push_back(points[i][0].item<double>());
    picture.y.push_back(points[i][1].item<double>());
  }
  for (const data::Batch& batch : sample.batches) {
    for (int64_t i = 0; i < batch.y.numel(); ++i) picture.label.push_back(batch.y[i].item<int64_t>());
  }
  return picture;
}

std::vector<FeaturePicture> pictures_of(const fs::path& run_folder, int64_t records) {
  const artifacts::TrainedModel trained(run_folder, 0);
  const federation::Setup& setup = trained.setup();
  const Sample sample = sample_of(setup, records);
  const at::Tensor last = at::cat(features_after_last_round(run_folder, sample));
  const at::Tensor first = at::cat(features_after_first_round(setup, sample));
  info("placing {} records", first.size(0));
  return {place("Features after round 1", first, sample, setup),
          place(fmt::format("Features after round {}", trained.round()), last, sample, setup)};
}

}  // namespace

Embedding embed_features(const fs::path& run_folder, int64_t records) {
  Embedding embedding{.pictures = pictures_of(run_folder, records), .file = run_folder / "embedding.json"};
  write_file_atomically(embedding.file, to_json(embedding.pictures).dump());
  return embedding;
}

json to_json(const std::vector<FeaturePicture>& pictures) {
  json value = json::array();
  for (const FeaturePicture& picture : pictures) {
    value.push_back({{"title", picture.title},
                     {"classes", picture.classes},
                     {"x", picture.x},
                     {"y", picture.y},
                     {"label", picture.label}});
  }
  return value;
}

}  // namespace sotto::run

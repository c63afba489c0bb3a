// sotto embed: what features of held-out records look like, after the first round and after the last.
#include "artifacts/run_directory.h"
#include "artifacts/trained_model.h"
#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/parallel.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "report/t_sne.h"
#include "transport/simulation.h"

#include <ATen/ATen.h>

#include <nlohmann/json.hpp>

#include <algorithm>

namespace sotto::cli {
namespace {

using nlohmann::json;

struct EmbedOptions {
  std::string run;
  int64_t records = 800;
  OutputOptions output;
};

// Held-out records, dealt evenly to clients.
struct Sample {
  std::vector<int64_t> clients;
  std::vector<data::Batch> batches;
};

Sample sample_of(const federation::Setup& setup, int64_t records) {
  const data::Dataset& dataset = setup.dataset();
  Sample sample;
  const int64_t clients = std::min<int64_t>(setup.spec().data.clients, 10);
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

json picture(const std::string& title, const std::vector<at::Tensor>& features, const Sample& sample,
             const federation::Setup& setup) {
  const at::Tensor points = report::t_sne(at::cat(features));
  json value = {{"title", title}, {"classes", setup.dataset().class_names}};
  std::vector<double> x, y;
  std::vector<int64_t> label;
  for (int64_t i = 0; i < points.size(0); ++i) {
    x.push_back(points[i][0].item<double>());
    y.push_back(points[i][1].item<double>());
  }
  for (const data::Batch& batch : sample.batches) {
    for (int64_t i = 0; i < batch.y.numel(); ++i) label.push_back(batch.y[i].item<int64_t>());
  }
  value["x"] = x;
  value["y"] = y;
  value["label"] = label;
  return value;
}

void embed(const EmbedOptions& options) {
  std::vector<at::Tensor> first, last;
  json pictures = json::array();
  {
    const artifacts::TrainedModel trained(options.run, 0);
    const Sample sample = sample_of(trained.setup(), options.records);
    for (size_t i = 0; i < sample.clients.size(); ++i) {
      last.push_back(artifacts::TrainedModel(options.run, sample.clients[i]).features(sample.batches[i].x));
    }

    // A run depends on its settings alone: its first round can be had again.
    const federation::Setup& setup = trained.setup();
    const auto states = federation::make_memory_store({});
    privacy::Ledger ledger;
    transport::Simulation again(setup, *states, ledger, {.threads = available_threads()});
    again.next_round();
    const auto method = setup.method().make_client(setup.client_context());
    for (size_t i = 0; i < sample.clients.size(); ++i) {
      method->select(again.broadcast(), states->get(sample.clients[i]));
      first.push_back(method->features(sample.batches[i].x));
    }
    info("placing {} records", at::cat(first).size(0));
    pictures.push_back(picture("Features after round 1", first, sample, setup));
    pictures.push_back(picture(fmt::format("Features after round {}", trained.round()), last, sample, setup));
  }
  const fs::path file = fs::path(options.run) / "embedding.json";
  write_file_atomically(file, pictures.dump());
  if (options.output.json) {
    fmt::print("{}\n", pictures.dump());
  } else {
    fmt::print("{}: two pictures of {} records; sotto report {} -o report.html shows them\n", file.string(),
               pictures[0]["x"].size(), options.run);
  }
}

}  // namespace

void add_embed(Command& program) {
  auto options = std::make_shared<EmbedOptions>();
  Command command = program.subcommand("embed", "Place features of held-out records in two dimensions, for the report");
  command.option("run", options->run, "A run directory").required();
  command.option("--records", options->records, "At most so many").range(10, 5000).shows_default();
  add_output_options(command, options->output, "Print the pictures as JSON");
  add_example(command, "sotto embed runs/fedproto");
  command.callback([options] { embed(*options); });
}

}  // namespace sotto::cli

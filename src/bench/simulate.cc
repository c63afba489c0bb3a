#include "bench/simulate.h"

#include "base/error.h"
#include "base/files.h"
#include "base/parallel.h"
#include "base/progress.h"
#include "bench/median.h"
#include "bench/temporary_folder.h"
#include "federation/cohort.h"
#include "methods/parts/local_trainer.h"
#include "run/execute.h"
#include "transport/start_together.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/optim/sgd.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

namespace sotto::bench {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr int64_t kCohort = 10;
constexpr int64_t kRecordsPerClient = 600;
// Forward and backward of the benchmark's CNN, as multiply-adds counted twice.
constexpr double kFlopsPerSample = 2.5e6;
constexpr int kRanksRounds = 6;  // cohorts differ in how evenly they live on ranks
constexpr int kPings = 20;
constexpr size_t kLargeMessage = size_t{16} << 20;

config::RunSpec workload(const SimulateOptions& options) {
  config::RunSpec spec;
  spec.name = "bench";
  spec.method_options = "{}";
  spec.data.clients = options.clients;
  spec.data.partition = "resample";
  spec.data.records_per_client = kRecordsPerClient;
  spec.federation.cohort = kCohort;
  spec.federation.batch = 32;
  spec.federation.lr = 0.05;
  spec.federation.eval_clients = 1;
  return spec;
}

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// The whole engine: cohort, shards, training, releases, ledger, aggregation, metrics and checkpoint on disk; no
// evaluation. A round in the middle: buffers are warm after the first, and the last one would be evaluated.
double engine_round(const federation::Setup& setup, int threads) {
  const TemporaryFolder folder;
  run::Run engine(setup, {.folder = folder.path(), .resume = false, .threads = threads});
  engine.next_round();
  const auto begin = Clock::now();
  engine.next_round();
  engine.next_round();
  return seconds_since(begin) / 2;
}

// Calls train(batch) for every step that one round consists of.
template <typename Train>
double bare_round(const federation::Setup& setup, const Train& train) {
  data::Batch batch;
  const auto begin = Clock::now();
  for (const int64_t client : federation::sample_cohort(setup.spec(), 2)) {
    const at::Tensor records = setup.partition().shard(client).train;
    for (int64_t at = 0; at < records.size(0); at += setup.spec().federation.batch) {
      data::gather(setup.dataset().train,
                   records.narrow(0, at, std::min(setup.spec().federation.batch, records.size(0) - at)), batch);
      train(batch);
    }
  }
  return seconds_since(begin);
}

// Forward, backward and step of the engine's own model, and nothing else.
double bare_own_round(const federation::Setup& setup) {
  const auto model = methods::initial_model(setup.public_context());
  const models::FlatParameters flat(*model);
  at::Tensor values = flat.values();
  return bare_round(setup, [&](const data::Batch& batch) {
    flat.zero_gradient();
    at::cross_entropy_loss(model->logits(batch.x), batch.y).backward();
    values.add_(flat.gradient(), -setup.spec().federation.lr);
  });
}

// The same network written the plain way: libtorch's operators, one tensor per parameter, libtorch's optimiser.
double bare_libtorch_round(const federation::Setup& setup) {
  std::vector<at::Tensor> p;
  for (const auto& [name, value] : methods::initial_model(setup.public_context())->shared_parameters()) {
    p.push_back(value.detach().clone().set_requires_grad(true));
  }
  SOTTO_INVARIANT(p.size() == 8);
  torch::optim::SGD optimizer(p, torch::optim::SGDOptions(setup.spec().federation.lr));
  return bare_round(setup, [&](const data::Batch& batch) {
    optimizer.zero_grad();
    at::Tensor x = at::max_pool2d(at::relu(at::conv2d(batch.x, p[0], p[1], 2, 3)), 2, 1);
    x = at::max_pool2d(at::relu(at::conv2d(x, p[2], p[3], 2)), 2, 1);
    x = at::relu(at::linear(x.flatten(1), p[4], p[5]));
    at::cross_entropy_loss(at::linear(x, p[6], p[7]), batch.y).backward();
    optimizer.step();
  });
}

// The best rate at which one core multiplies matrices here, in FLOP/s.
double peak_flops() {
  constexpr int64_t kSize = 512;
  const at::Tensor a = at::ones({kSize, kSize});
  at::Tensor c = at::mm(a, a);
  double best = 0.0;
  for (int i = 0; i < 20; ++i) {
    const auto begin = Clock::now();
    at::mm_out(c, a, a);
    best = std::max(best, 2.0 * kSize * kSize * kSize / seconds_since(begin));
  }
  return best;
}

double peak_rss_mb() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024.0;
}

struct RanksRound {
  double seconds = 0;
  double communication_seconds = 0;
  double upload_seconds = 0;
};

// As engine_round, with rank 0 of these; the others are in run::help.
RanksRound ranks_round(const federation::Setup& setup, transport::Ranks& ranks, const fs::path& folder) {
  run::Run engine(
      setup, {.folder = folder, .resume = false, .threads = 1, .client_done = {}, .home = nullptr, .ranks = &ranks});
  engine.next_round();
  const transport::Traffic before = engine.traffic();
  const auto begin = Clock::now();
  for (int i = 0; i < kRanksRounds; ++i) engine.next_round();
  const double seconds = seconds_since(begin);
  const transport::Traffic after = engine.traffic();
  return {.seconds = seconds / kRanksRounds,
          .communication_seconds = (after.seconds - before.seconds) / kRanksRounds,
          .upload_seconds =
              (after.upload_seconds - before.upload_seconds) / static_cast<double>(after.uploads - before.uploads)};
}

// The same rounds by this process alone.
double alone_round(const federation::Setup& setup) {
  const TemporaryFolder folder;
  run::Run engine(setup, {.folder = folder.path(), .resume = false, .threads = 1});
  engine.next_round();
  const auto begin = Clock::now();
  for (int i = 0; i < kRanksRounds; ++i) engine.next_round();
  return seconds_since(begin) / kRanksRounds;
}

// Half of the time that so many bytes need to the last rank and back; the best of several tries.
double way_seconds(transport::Ranks& ranks, size_t bytes) {
  const int last = ranks.size() - 1;
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < kPings; ++i) {
    const auto begin = Clock::now();
    if (ranks.rank() == 0) {
      ranks.send(last, std::string(bytes, '\0'));
      ranks.receive(last);
    } else if (ranks.rank() == last) {
      ranks.send(0, ranks.receive(0));
    }
    best = std::min(best, seconds_since(begin) / 2);
  }
  return best;
}

}  // namespace

json measure_simulation(const SimulateOptions& options, transport::Ranks& ranks) {
  at::set_num_threads(1);
  config::RunSpec spec = workload(options);
  spec.rounds = kRanksRounds + 2;
  spec.federation.eval_every = spec.rounds;
  const auto setup = transport::start_together(ranks, [&] { return federation::Setup(spec); });
  if (!setup) return nullptr;
  const double latency = way_seconds(ranks, 1);
  const double large = way_seconds(ranks, kLargeMessage);
  std::vector<double> one, all, scaling, share, upload;
  Progress progress("bench", options.repeats);
  for (int64_t i = 0; i < options.repeats; ++i) {
    std::string path;
    std::optional<TemporaryFolder> folder;
    if (ranks.rank() == 0) path = folder.emplace().path().string();
    ranks.broadcast(path);
    if (ranks.rank() > 0) {
      run::help(*setup, path, ranks, 1);
    } else {
      const RanksRound round = ranks_round(*setup, ranks, path);
      one.push_back(alone_round(*setup));
      all.push_back(round.seconds);
      scaling.push_back(one.back() / round.seconds);
      share.push_back(round.communication_seconds / round.seconds);
      upload.push_back(round.upload_seconds);
    }
    progress.advance();
  }
  ranks.finish();
  if (ranks.rank() > 0) return nullptr;
  return {{"ranks", ranks.size()},
          {"rounds_per_s", 1 / median(all)},
          {"rounds_per_s_1_rank", 1 / median(one)},
          {"scaling_ranks", median(scaling)},
          {"communication_share", median(share)},
          {"upload_ms", 1e3 * median(upload)},
          {"latency_us", 1e6 * latency},
          {"bandwidth_mb_per_s", 1e-6 * kLargeMessage / (large - latency)}};
}

json measure_simulation(const SimulateOptions& options) {
  at::set_num_threads(1);
  config::RunSpec spec = workload(options);
  spec.rounds = 4;
  spec.federation.eval_every = spec.rounds;
  const federation::Setup setup(spec);
  const int threads = options.threads > 0 ? options.threads : available_threads();

  std::vector<double> engine_one, engine_all, own, libtorch, overhead, scaling;
  Progress progress("bench", options.repeats);
  for (int64_t i = 0; i < options.repeats; ++i) {
    engine_all.push_back(engine_round(setup, threads));
    engine_one.push_back(engine_round(setup, 1));
    scaling.push_back(engine_one.back() / engine_all.back());
    if (!options.engine_only) {
      own.push_back(bare_own_round(setup));
      overhead.push_back(engine_one.back() / own.back());
      libtorch.push_back(bare_libtorch_round(setup));
    }
    progress.advance();
  }
  const double samples = kCohort * kRecordsPerClient;
  const double per_round = median(engine_all);
  json value = {{"clients", options.clients},
                {"threads", threads},
                {"rounds_per_s", 1 / per_round},
                {"samples_per_s", samples / per_round},
                {"rounds_per_s_1_thread", 1 / median(engine_one)},
                {fmt::format("scaling_{}_threads", threads), median(scaling)},
                {"fraction_of_peak", samples * kFlopsPerSample / median(engine_one) / peak_flops()},
                {"peak_rss_mb", peak_rss_mb()}};
  if (!options.engine_only) {
    value["bare_rounds_per_s"] = 1 / median(libtorch);
    value["bare_own_rounds_per_s"] = 1 / median(own);
    value["overhead"] = median(overhead);
    value["speedup_over_bare"] = median(libtorch) / per_round;
  }
  return value;
}

}  // namespace sotto::bench

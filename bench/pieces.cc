// What surrounds a training step: drawing randomness and gathering batches.
#include "base/random.h"
#include "data/dataset.h"

#include <ATen/ATen.h>

#include <benchmark/benchmark.h>

namespace {

void gather_batch(benchmark::State& state) {
  sotto::data::Records records;
  records.x = at::randint(0, 256, {60000, 1, 28, 28}, at::kByte);
  records.y = at::randint(0, 10, {60000}, at::kLong);
  const at::Tensor indices = at::randint(0, 60000, {state.range(0)}, at::kLong);
  sotto::data::Batch batch;
  for (auto _ : state) sotto::data::gather(records, indices, batch);
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(gather_batch)->Arg(32)->Arg(256)->Unit(benchmark::kMicrosecond);

void shuffle_600(benchmark::State& state) {
  sotto::RandomStream stream(1, "bench");
  std::vector<int64_t> values(600);
  for (auto _ : state) stream.shuffle(values);
}
BENCHMARK(shuffle_600)->Unit(benchmark::kMicrosecond);

void sample_10_of_a_million(benchmark::State& state) {
  sotto::RandomStream stream(1, "bench");
  for (auto _ : state) benchmark::DoNotOptimize(stream.sample_without_replacement(1000000, 10));
}
BENCHMARK(sample_10_of_a_million)->Unit(benchmark::kMicrosecond);

}  // namespace

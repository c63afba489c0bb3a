// The benchmark CNN's operators, forward and backward, beside libtorch's own. Compare two rows of one run.
#include "models/ops/ops.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <benchmark/benchmark.h>

namespace {

struct Stage {
  at::Tensor input, weight, bias;
  int64_t stride, padding;
};

// The two convolutions of the CNN at batch 32.
Stage stage(int64_t which) {
  at::set_num_threads(1);
  Stage s = which == 1 ? Stage{at::randn({32, 1, 28, 28}), at::randn({16, 1, 8, 8}), at::randn({16}), 2, 3}
                       : Stage{at::randn({32, 16, 13, 13}), at::randn({32, 16, 4, 4}), at::randn({32}), 2, 0};
  s.input.set_requires_grad(which != 1);
  s.weight.set_requires_grad(true);
  s.bias.set_requires_grad(true);
  return s;
}

template <typename Forward>
void forward_and_backward(benchmark::State& state, const Forward& forward) {
  const Stage s = stage(state.range(0));
  for (auto _ : state) {
    const at::Tensor out = forward(s);
    out.sum().backward();
    benchmark::DoNotOptimize(out.data_ptr());
  }
  const double flops =
      2.0 * 32 * s.weight.numel() * (state.range(0) == 1 ? 14 * 14 : 5 * 5) * (state.range(0) == 1 ? 2 : 3);
  state.counters["GFLOP/s"] = benchmark::Counter(flops / 1e9, benchmark::Counter::kIsIterationInvariantRate);
}

void libtorch_stage(benchmark::State& state) {
  forward_and_backward(state, [](const Stage& s) {
    return at::max_pool2d(at::relu(at::conv2d(s.input, s.weight, s.bias, s.stride, s.padding)), 2, 1);
  });
}
BENCHMARK(libtorch_stage)->Arg(1)->Arg(2)->Unit(benchmark::kMicrosecond);

void sotto_stage(benchmark::State& state) {
  forward_and_backward(state, [](const Stage& s) {
    return sotto::models::ops::conv2d_relu_max_pool2d(s.input, s.weight, s.bias, s.stride, s.padding, 2, 1);
  });
}
BENCHMARK(sotto_stage)->Arg(1)->Arg(2)->Unit(benchmark::kMicrosecond);

void gemm_peak(benchmark::State& state) {
  at::set_num_threads(1);
  const at::Tensor a = at::randn({512, 512});
  at::Tensor c = at::empty({512, 512});
  for (auto _ : state) at::mm_out(c, a, a);
  state.counters["GFLOP/s"] =
      benchmark::Counter(2.0 * 512 * 512 * 512 / 1e9, benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK(gemm_peak)->Unit(benchmark::kMicrosecond);

}  // namespace

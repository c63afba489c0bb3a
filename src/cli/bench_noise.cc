#include "cli/bench_noise.h"

#include "base/progress.h"
#include "cli/bench_figures.h"
#include "cli/command.h"
#include "cli/output.h"
#include "privacy/noise/gaussian.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>

namespace sotto::cli {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

struct BenchOptions {
  int64_t values = 11'200'000;  // a ResNet-18
  int64_t repeats = 25;
  OutputOptions output;
};

template <typename Work>
double seconds(const Work& work) {
  const auto begin = Clock::now();
  work();
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// One core, buffers warm, the two sides in turn: adding secure noise to values where they lie, and writing normal
// numbers into a tensor of the same size.
json measure(const BenchOptions& options) {
  at::set_num_threads(1);
  at::Tensor noised = at::zeros({options.values});
  at::Tensor drawn = at::zeros({options.values});
  const std::span<float> values(noised.data_ptr<float>(), static_cast<size_t>(options.values));
  privacy::NoiseSource source = privacy::NoiseSource::secure();

  std::vector<double> secure, randn, ratio;
  Progress progress("bench", options.repeats);
  for (int64_t i = -1; i < options.repeats; ++i) {
    const double secure_time = seconds([&] { privacy::add_gaussian(values, 1.0, 1.0, source); });
    const double randn_time = seconds([&] { at::randn_out(drawn, {options.values}); });
    if (i < 0) continue;
    secure.push_back(secure_time);
    randn.push_back(randn_time);
    ratio.push_back(randn_time / secure_time);
    progress.advance();
  }
  const auto count = static_cast<double>(options.values);
  return {{"values", options.values},
          {"secure_per_s", count / median(secure)},
          {"torch_randn_per_s", count / median(randn)},
          {"ratio", median(ratio)},
          {"best_secure_per_s", count / *std::min_element(secure.begin(), secure.end())},
          {"best_torch_randn_per_s", count / *std::min_element(randn.begin(), randn.end())}};
}

}  // namespace

void add_bench_noise(Command& bench_command) {
  auto options = std::make_shared<BenchOptions>();
  Command command =
      bench_command.subcommand("noise", "Secure Gaussian noise added to floats, against torch::randn, on one core");
  command.option("--values", options->values, "How many floats").range(1000, 1 << 30);
  command.option("--repeats", options->repeats, "Interleaved repetitions; medians are reported").range(1, 10000);
  add_output_options(command, options->output, "Print the figures as JSON");
  add_example(command, "sotto bench noise --json");
  command.callback([options] { print_figures(measure(*options), options->output); });
}

}  // namespace sotto::cli

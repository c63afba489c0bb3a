#include "bench/noise.h"

#include "base/progress.h"
#include "bench/median.h"
#include "privacy/noise/gaussian.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <span>
#include <vector>

namespace sotto::bench {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

template <typename Work>
double seconds(const Work& work) {
  const auto begin = Clock::now();
  work();
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

}  // namespace

json measure_noise(const NoiseOptions& options) {
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

}  // namespace sotto::bench

#include "bench/dpsgd.h"

#include "base/progress.h"
#include "base/random.h"
#include "bench/median.h"
#include "bench/tensor_memory.h"
#include "models/flat.h"
#include "models/model.h"
#include "privacy/dpsgd/clipper.h"
#include "privacy/noise/gaussian.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <vector>

namespace sotto::bench {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

struct Workload {
  models::ModelOptions model;
  models::Task task;
  int64_t batch;
};

constexpr double kLearningRate = 1e-3;
constexpr double kClipNorm = 1.0;
constexpr double kNoiseMultiplier = 1.0;
constexpr int kWarmUpSteps = 2;

// The linear layers before the head, and of a ViT those of the attention; a ResNet has none but its head.
std::vector<std::string> lora_targets(const std::string& model) {
  if (model == "vit") return {"attn"};
  if (model == "mlp") return {"fc1", "fc2"};
  return {model == "cnn" ? "fc1" : "fc"};
}

Workload workload(const DpsgdOptions& options) {
  models::ModelOptions model;
  model.name = options.model;
  Workload found;
  if (options.model == "cnn") {
    found = {model, {{1, 28, 28}, 10}, 256};
  } else if (options.model == "mlp") {
    model.hidden = {256, 128};
    found = {model, {{1, 28, 28}, 10}, 1024};
  } else if (options.model == "vit") {
    model.name = "vit-tiny";
    model.width = 192;
    model.depth = 4;
    model.heads = 3;
    model.patch = 4;
    found = {model, {{3, 32, 32}, 10}, 64};
  } else {
    found = {model, {{3, 32, 32}, 10}, 32};
  }
  if (options.lora > 0) found.model.lora = {options.lora, lora_targets(options.model)};
  if (options.batch > 0) found.batch = options.batch;
  return found;
}

// One model with one batch, and the two ways to take a step.
class Trainee {
 public:
  Trainee(const Workload& work, int64_t slots) {
    RandomStream stream(1, "bench-dpsgd");
    model_ = models::make_model(work.model, work.task, stream);
    model_->train();
    flat_ = models::FlatParameters(*model_);
    std::vector<int64_t> shape = {work.batch};
    shape.insert(shape.end(), work.task.record_shape.begin(), work.task.record_shape.end());
    x_ = at::empty(shape).uniform_(-1.0, 1.0, stream.torch_generator());
    y_ = at::randint(0, work.task.classes, {work.batch}, stream.torch_generator(), at::kLong);
    clipper_.emplace(*model_, flat_,
                     privacy::ClipOptions{.bound = kClipNorm, .slots = slots, .usual_batch = work.batch});
  }

  void plain_step() {
    flat_.zero_gradient();
    at::cross_entropy_loss(model_->logits(x_), y_).backward();
    flat_.values().add_(flat_.gradient(), -kLearningRate);
  }

  void private_step() {
    const at::Tensor sum = clipper_->sum(x_, y_).gradient;
    const auto count = static_cast<size_t>(sum.numel());
    const double stddev = kNoiseMultiplier * kClipNorm;
    if (sum.scalar_type() == at::kDouble) {
      privacy::add_gaussian({sum.data_ptr<double>(), count}, stddev, kClipNorm, noise_);
      flat_.gradient().copy_(sum);
    } else {
      privacy::add_gaussian({sum.data_ptr<float>(), count}, stddev, kClipNorm, noise_);
    }
    flat_.values().add_(flat_.gradient(), -kLearningRate / static_cast<double>(x_.size(0)));
  }

  int64_t parameters() const { return flat_.values().numel(); }

 private:
  std::shared_ptr<models::Model> model_;
  models::FlatParameters flat_;
  at::Tensor x_, y_;
  std::optional<privacy::PerExampleClipper> clipper_;
  privacy::NoiseSource noise_ = privacy::NoiseSource::secure();
};

template <typename Step>
double milliseconds(int repeats, const Step& step) {
  const auto begin = Clock::now();
  for (int i = 0; i < repeats; ++i) step();
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count() / repeats;
}

// Bytes of live tensors at the worst moment of a step, without those that were there before the model.
template <typename Step>
double peak_megabytes(const Workload& work, int64_t slots, const Step& step) {
  TensorMemory memory;
  Trainee trainee(work, slots);
  for (int i = 0; i < kWarmUpSteps; ++i) step(trainee);
  memory.start_peak();
  step(trainee);
  return static_cast<double>(memory.peak_bytes()) / (1 << 20);
}

}  // namespace

json measure_dpsgd(const DpsgdOptions& options) {
  at::set_num_threads(options.threads);
  const Workload work = workload(options);
  const double plain_mb = peak_megabytes(work, options.slots, [](Trainee& t) { t.plain_step(); });
  const double private_mb = peak_megabytes(work, options.slots, [](Trainee& t) { t.private_step(); });

  Trainee plain(work, options.slots), clipped(work, options.slots);
  milliseconds(kWarmUpSteps, [&] { plain.plain_step(), clipped.private_step(); });
  const double pair = milliseconds(1, [&] { plain.plain_step(), clipped.private_step(); });
  const int steps = std::max(1, static_cast<int>(100.0 / pair));
  const int repeats = std::clamp(static_cast<int>(1e3 * options.seconds / (pair * steps)), 5, 1001);
  std::vector<double> plain_ms, private_ms, ratios;
  Progress progress("bench", repeats);
  for (int i = 0; i < repeats; ++i) {
    plain_ms.push_back(milliseconds(steps, [&] { plain.plain_step(); }));
    private_ms.push_back(milliseconds(steps, [&] { clipped.private_step(); }));
    ratios.push_back(private_ms.back() / plain_ms.back());
    progress.advance();
  }
  return {{"model", options.model},
          {"parameters", clipped.parameters()},
          {"lora", options.lora},
          {"batch", work.batch},
          {"threads", options.threads},
          {"plain_ms", median(plain_ms)},
          {"private_ms", median(private_ms)},
          {"ratio", median(ratios)},
          {"plain_peak_mb", plain_mb},
          {"private_peak_mb", private_mb},
          {"memory_ratio", private_mb / plain_mb}};
}

}  // namespace sotto::bench

#include "models/pretrain.h"

#include "base/error.h"
#include "base/files.h"
#include "base/interrupt.h"
#include "base/progress.h"
#include "models/task_data.h"
#include "models/weights/weight_store.h"
#include "models/weights/weights.h"

#include <ATen/ATen.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <nlohmann/json.hpp>

#include <chrono>
#include <cmath>
#include <numbers>

namespace sotto::models {
namespace {

constexpr int64_t kEvaluationBatch = 256;
constexpr double kWarmup = 0.05;
constexpr int64_t kShift = 4;
constexpr int64_t kColour = 3;

void check(const PretrainOptions& options) {
  if (options.epochs < 1) fail_user("epochs must be at least 1, not {}", options.epochs);
  if (options.batch < 1) fail_user("the batch size must be at least 1, not {}", options.batch);
  if (!(options.lr > 0.0 && std::isfinite(options.lr)))
    fail_user("the learning rate must be positive, not {}", options.lr);
  if (!(options.weight_decay >= 0.0)) fail_user("weight decay must not be negative, it is {}", options.weight_decay);
  if (options.optimizer != "adamw" && options.optimizer != "sgd")
    fail_user("unknown optimizer '{}': use adamw or sgd", options.optimizer);
  if (options.name.find('/') != options.name.npos) fail_user("'{}' cannot be a name: it contains '/'", options.name);
}

std::unique_ptr<torch::optim::Optimizer> make_optimizer(const PretrainOptions& options, Model& model) {
  std::vector<at::Tensor> parameters;
  for (auto& [name, value] : model.shared_parameters()) parameters.push_back(value);
  if (options.optimizer == "sgd")
    return std::make_unique<torch::optim::SGD>(
        parameters, torch::optim::SGDOptions(options.lr).momentum(0.9).weight_decay(options.weight_decay));
  return std::make_unique<torch::optim::AdamW>(
      parameters, torch::optim::AdamWOptions(options.lr).weight_decay(options.weight_decay));
}

double learning_rate(double peak, int64_t step, int64_t steps) {
  const double done = (static_cast<double>(step) + 1.0) / static_cast<double>(steps);
  if (done < kWarmup) return peak * done / kWarmup;
  return peak * 0.5 * (1.0 + std::cos(std::numbers::pi * (done - kWarmup) / (1.0 - kWarmup)));
}

// Each image moved by up to kShift pixels; colour images are mirrored half of the time (digits and letters must not
// be).
at::Tensor augment(const at::Tensor& images, RandomStream& random) {
  const int64_t height = images.size(2), width = images.size(3);
  const at::Tensor padded = at::constant_pad_nd(images, {kShift, kShift, kShift, kShift}, -1.0);
  at::Tensor moved = at::empty_like(images);
  for (int64_t i = 0; i < images.size(0); ++i) {
    const auto top = static_cast<int64_t>(random.below(2 * kShift + 1));
    const auto left = static_cast<int64_t>(random.below(2 * kShift + 1));
    const at::Tensor window = padded[i].narrow(1, top, height).narrow(2, left, width);
    moved[i].copy_(images.size(1) == kColour && random.bernoulli(0.5) ? window.flip(2) : window);
  }
  return moved;
}

class Trainer {
 public:
  Trainer(const PretrainOptions& options, const TaskData& data)
      : options_(options),
        data_(data),
        init_(options.seed, "pretrain-init"),
        random_(options.seed, "pretrain-order"),
        model_(make_model(options.model, data.task, init_)),
        optimizer_(make_optimizer(options, *model_)) {
    model_->set_generator(RandomStream(options.seed, "pretrain-dropout").torch_generator());
    split();
    steps_ = options.epochs * ((train_.size(0) + options.batch - 1) / options.batch);
  }

  // The mean loss, or nothing if Ctrl-C came in between.
  std::optional<double> train_epoch(int64_t epoch) {
    model_->train();
    std::vector<int64_t> order = random_.permutation(train_.size(0));
    const at::Tensor rows = train_.index_select(0, at::tensor(order));
    Progress progress(fmt::format("epoch {} of {}", epoch, options_.epochs), rows.size(0));
    double sum = 0.0;
    for (int64_t start = 0; start < rows.size(0); start += options_.batch) {
      if (interrupted()) return std::nullopt;
      const int64_t size = std::min(options_.batch, rows.size(0) - start);
      const double loss = train_step(rows.narrow(0, start, size));
      sum += loss * static_cast<double>(size);
      progress.advance(size, fmt::format("loss {:.3f}", loss));
    }
    return sum / static_cast<double>(rows.size(0));
  }

  double accuracy() {
    const at::NoGradGuard no_grad;
    model_->eval();
    int64_t right = 0;
    for (int64_t start = 0; start < held_out_.size(0); start += kEvaluationBatch) {
      const int64_t size = std::min(kEvaluationBatch, held_out_.size(0) - start);
      data::gather(*held_out_records_, held_out_.narrow(0, start, size), batch_);
      right += model_->logits(batch_.x).argmax(1).eq(batch_.y).sum().item<int64_t>();
    }
    return static_cast<double>(right) / static_cast<double>(held_out_.size(0));
  }

  const Model& model() const { return *model_; }

 private:
  void split() {
    const auto& dataset = data_.dataset;
    const at::Tensor all = at::tensor(random_.permutation(dataset.train.size()));
    const bool has_test = dataset.test.size() > 0;
    const int64_t held_out = has_test ? 0 : std::max<int64_t>(all.size(0) / 10, 1);
    if (all.size(0) - held_out < 1) fail_user("dataset '{}' has too few records to train on", dataset.name);
    train_ = all.narrow(0, held_out, all.size(0) - held_out);
    held_out_ = has_test ? at::arange(dataset.test.size(), at::kLong) : all.narrow(0, 0, held_out);
    held_out_records_ = has_test ? &dataset.test : &dataset.train;
  }

  double train_step(const at::Tensor& rows) {
    data::gather(data_.dataset.train, rows, batch_);
    const bool images = options_.augment && data_.dataset.kind == data::Kind::kImages;
    const at::Tensor x = images ? augment(batch_.x, random_) : batch_.x;
    for (auto& group : optimizer_->param_groups()) group.options().set_lr(learning_rate(options_.lr, step_, steps_));
    ++step_;
    optimizer_->zero_grad();
    const at::Tensor loss = at::cross_entropy_loss(model_->logits(x), batch_.y);
    const double value = loss.item<double>();
    if (!std::isfinite(value)) fail_user("the loss is not finite after {} steps: lower the learning rate", step_);
    loss.backward();
    optimizer_->step();
    return value;
  }

  const PretrainOptions& options_;
  const TaskData& data_;
  RandomStream init_, random_;
  std::shared_ptr<Model> model_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  at::Tensor train_, held_out_;
  const data::Records* held_out_records_ = nullptr;
  data::Batch batch_;
  int64_t step_ = 0, steps_ = 0;
};

// What the weights will have seen: these records, and all that the weights they begin with have.
data::Origin origin_of(const PretrainOptions& options) {
  data::Origin origin = data::origin_of(options.data);
  std::vector<std::string> before = backbone_names(options.data.features);
  before.push_back(options.model.weights);
  for (const std::string& weights : before) {
    const auto card = find_pretrained_card(weights);
    if (card) origin.insert(origin.end(), card->origin.begin(), card->origin.end());
  }
  return origin;
}

void save(const PretrainResult& result, const Model& model) {
  make_folder(pretrained_folder());
  write_state_dict(result.file, model.state());
  write_file_atomically(pretrained_folder() / (result.name + ".json"), to_json(result.card).dump(2) + "\n");
}

}  // namespace

PretrainResult pretrain(const PretrainOptions& options, const std::function<void(const EpochReport&)>& on_epoch) {
  check(options);
  const TaskData data = load_task_data(options.data, options.model, options.seed);
  PretrainResult result;
  result.name = options.name.empty() ? fmt::format("{}-{}", options.model.name, data.dataset.name) : options.name;
  result.file = pretrained_folder() / (result.name + ".pt");
  const bool images = data.task.record_shape.size() == 3;
  result.card = {.model = options.model,
                 .dataset = data.dataset.name,
                 .origin = origin_of(options),
                 .classes = data.dataset.class_names,
                 .image_size = images ? data.task.record_shape[1] : 0,
                 .planned = options.epochs,
                 .seed = options.seed};

  Trainer trainer(options, data);
  for (int64_t epoch = 1; epoch <= options.epochs; ++epoch) {
    const auto start = std::chrono::steady_clock::now();
    const std::optional<double> loss = trainer.train_epoch(epoch);
    if (!loss) {
      result.interrupted = true;
      return result;
    }
    result.card.epochs = epoch;
    result.card.accuracy = trainer.accuracy();
    save(result, trainer.model());
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    on_epoch({epoch, *loss, result.card.accuracy, seconds.count()});
  }
  return result;
}

}  // namespace sotto::models

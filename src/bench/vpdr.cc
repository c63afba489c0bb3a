#include "bench/vpdr.h"

#include "base/progress.h"
#include "base/random.h"
#include "bench/median.h"
#include "config/load.h"
#include "methods/catalogue.h"
#include "methods/prototypes/dimension_score.h"
#include "methods/prototypes/losses.h"
#include "methods/prototypes/prototype_model.h"
#include "methods/prototypes/prototype_release.h"
#include "models/flat.h"
#include "privacy/ledger.h"

#include <ATen/ATen.h>
#include <torch/optim/adamw.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace sotto::bench {
namespace {

constexpr int64_t kParticipations = 20;
constexpr int64_t kClasses = 10;
constexpr int64_t kWidth = 512;
constexpr double kRadius = 10, kGamma = 0.05, kTau = 4, kWeight = 0.05, kBeta = 0.999;

double milliseconds(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

config::RunSpec spec_with(const std::string& mechanism) {
  return config::parse_run_spec(
      fmt::format("rounds = 20\n[data]\nclients = 4\n[method]\nname = \"fedproto\"\nmechanism = \"{}\"\n"
                  "[privacy]\nepsilon = 1\ndelta = 1e-5\nadjacency = \"replace\"\n",
                  mechanism),
      "bench", {});
}

// The model, a batch of noise for pictures, and what the stages need.
class Workload {
 public:
  explicit Workload(const VpdrOptions& options) {
    methods::PrototypeModelOptions model;
    model.encoder.name = "vit-tiny";
    model.encoder.patch = options.patch;
    model.encoder.adapter = 16;
    model.encoder.freeze_backbone = true;
    model.width = kWidth;
    model_ = std::make_shared<methods::PrototypeModel>(model, models::Task{{3, 32, 32}, kClasses}, 1);
    flat_ = models::FlatParameters(*model_);
    teacher_ = model_->copy_of_head();
    RandomStream stream(1, "bench-records");
    x_ = at::empty({options.batch, 3, 32, 32}).normal_(0, 1, stream.torch_generator());
    y_ = at::arange(options.batch, at::kLong).remainder(kClasses);
    features_ = encode();
  }

  at::Tensor encode() {
    const at::NoGradGuard no_grad;
    model_->eval();
    return model_->features(x_);
  }

  void fine_tune() {
    model_->train();
    flat_.zero_gradient();
    at::cross_entropy_loss(model_->logits(x_), y_).backward();
    step();
  }

  // What follows the encoder, with DCR and without: its own gradient included, the encoder's not.
  void learn_from_features(bool dcr) {
    model_->train();
    flat_.zero_gradient();
    at::Tensor z = features_.clone().requires_grad_();
    if (!dcr) {
      at::cross_entropy_loss(model_->classify(z), y_).backward();
      return;
    }
    const at::Tensor answer = model_->classify(methods::soft_clip(z, kRadius, kGamma));
    at::Tensor taught;
    {
      const at::NoGradGuard no_grad;
      taught = teacher_->forward(z.detach());
    }
    (at::cross_entropy_loss(answer, y_) + kWeight * methods::distillation(taught, answer, kTau)).backward();
    methods::follow(*teacher_, model_->head(), kBeta);
  }

  void release(const methods::PrototypeRelease& how, int64_t round) {
    how.release({features_, y_, y_}, {}, {}, {.records = x_.size(0), .participations = kParticipations, .epsilon = 1.0},
                {.ledger = ledger_, .round = round});
  }

  void score() { methods::dimension_scores(features_, y_, kClasses); }

 private:
  void step() {
    at::Tensor values = flat_.values();
    values.mutable_grad() = flat_.gradient();
    torch::optim::AdamW(std::vector<at::Tensor>{values}, torch::optim::AdamWOptions(1e-3)).step();
  }

  std::shared_ptr<methods::PrototypeModel> model_;
  models::FlatParameters flat_;
  std::shared_ptr<methods::Head> teacher_;
  at::Tensor x_, y_, features_;
  privacy::Ledger ledger_;
};

}  // namespace

nlohmann::json measure_vpdr(const VpdrOptions& options) {
  Workload work(options);
  const config::RunSpec igpp_spec = spec_with("igpp"), vpp_spec = spec_with("vpp");
  const methods::PublicFacts facts{.most_participations = kParticipations};
  const auto release_of = [&](const config::RunSpec& spec, methods::PrototypeMechanism mechanism) {
    methods::ReleaseOptions release;
    release.mechanism = mechanism;
    return methods::make_prototype_release({spec, facts}, release, {kWidth, kClasses, 1}, false);
  };
  const auto igpp = release_of(igpp_spec, methods::PrototypeMechanism::kIgpp);
  const auto vpp = release_of(vpp_spec, methods::PrototypeMechanism::kVpp);

  constexpr int kSmall = 20;  // short stages are repeated more often
  std::vector<double> encode, tune, plain_release, parted_release, score, plain_head, dcr_head;
  Progress progress("bench vpdr", options.repeats);
  work.learn_from_features(true);
  int64_t round = 0;
  for (int i = 0; i < options.repeats; ++i) {
    encode.push_back(milliseconds([&] { work.encode(); }));
    tune.push_back(milliseconds([&] { work.fine_tune(); }));
    for (int k = 0; k < kSmall; ++k) {
      ++round;
      plain_release.push_back(milliseconds([&] { work.release(*igpp, round); }));
      parted_release.push_back(milliseconds([&] { work.release(*vpp, 1000000 + round); }));
      score.push_back(milliseconds([&] { work.score(); }));
      plain_head.push_back(milliseconds([&] { work.learn_from_features(false); }));
      dcr_head.push_back(milliseconds([&] { work.learn_from_features(true); }));
    }
    progress.advance();
  }
  const double base = median(encode) + median(plain_release);
  const double vpp_extra = median(parted_release) - median(plain_release);
  const double dcr_extra = median(dcr_head) - median(plain_head);
  return {{"prototypes_ms", base},
          {"vpp_extra_ms", vpp_extra},
          {"vpp_scores_ms", median(score)},
          {"vpp_overhead", vpp_extra / base},
          {"fine_tuning_ms", median(tune)},
          {"dcr_extra_ms", dcr_extra},
          {"dcr_overhead", dcr_extra / median(tune)}};
}

}  // namespace sotto::bench

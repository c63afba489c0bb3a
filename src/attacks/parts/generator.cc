#include "attacks/parts/generator.h"

#include "base/progress.h"
#include "base/random.h"

#include <ATen/ATen.h>
#include <torch/optim/adam.h>

#include <cmath>

namespace sotto::attacks {
namespace {

constexpr int64_t kNoise = 64;
constexpr int64_t kHidden = 256;

class Layers {
 public:
  Layers(const std::vector<int64_t>& widths, at::Generator& generator) {
    for (size_t i = 1; i < widths.size(); ++i) {
      const double stddev = std::sqrt(2.0 / static_cast<double>(widths[i - 1]));
      parameters_.push_back(at::empty({widths[i], widths[i - 1]}, at::kFloat).normal_(0, stddev, generator));
      parameters_.push_back(at::zeros({widths[i]}, at::kFloat));
    }
    for (at::Tensor& parameter : parameters_) parameter.requires_grad_();
  }

  at::Tensor operator()(at::Tensor x) const {
    for (size_t i = 0; i < parameters_.size(); i += 2) {
      x = at::linear(x, parameters_[i], parameters_[i + 1]);
      if (i + 2 < parameters_.size()) x = at::leaky_relu(x, 0.2);
    }
    return x;
  }

  const std::vector<at::Tensor>& parameters() const { return parameters_; }

 private:
  std::vector<at::Tensor> parameters_;
};

}  // namespace

at::Tensor generate_by_class(models::Model& judge, const at::Tensor& real, const at::Tensor& labels, int64_t classes,
                             const GanOptions& options) {
  judge.eval();
  Progress progress("generator", options.steps);
  at::Generator generator = RandomStream(options.seed, "gan").torch_generator();
  const int64_t pixels = real.numel() / real.size(0);
  const Layers pictures({kNoise + classes, kHidden, kHidden, pixels}, generator);
  const Layers real_or_fake({judge.feature_width(), 1}, generator);
  torch::optim::Adam artist(pictures.parameters(), torch::optim::AdamOptions(options.lr).betas({0.5, 0.999}));
  std::vector<at::Tensor> judged_by = real_or_fake.parameters();
  for (const at::Tensor& parameter : judge.parameters()) {
    if (parameter.requires_grad()) judged_by.push_back(parameter);
  }
  torch::optim::Adam critic(judged_by, torch::optim::AdamOptions(options.judge_lr).betas({0.5, 0.999}));
  const auto draw = [&](const at::Tensor& wanted) {
    const at::Tensor noise = at::empty({wanted.size(0), kNoise}, at::kFloat).normal_(0, 1, generator);
    const at::Tensor asked = at::one_hot(wanted, classes).to(at::kFloat);
    std::vector<int64_t> shape = real.sizes().vec();
    shape[0] = wanted.size(0);
    return pictures(at::cat({noise, asked}, 1)).tanh().reshape(shape);
  };
  const auto opinion = [&](const at::Tensor& features, double truth) {
    const at::Tensor said = real_or_fake(features);
    return at::binary_cross_entropy_with_logits(said, at::full_like(said, truth));
  };
  for (int64_t step = 0; step < options.steps; ++step) {
    const at::Tensor wanted = at::empty({options.batch}, at::kLong).random_(0, classes, generator);
    const at::Tensor rows = at::empty({options.batch}, at::kLong).random_(0, real.size(0), generator);
    const at::Tensor fake = draw(wanted);
    critic.zero_grad();
    const at::Tensor seen = judge.features(real.index_select(0, rows));
    (opinion(seen, 1) + opinion(judge.features(fake.detach()), 0) +
     at::cross_entropy_loss(judge.classify(seen), labels.index_select(0, rows)))
        .backward();
    critic.step();
    artist.zero_grad();
    const at::Tensor features = judge.features(fake);
    (opinion(features, 1) + at::cross_entropy_loss(judge.classify(features), wanted)).backward();
    artist.step();
    progress.advance();
  }
  const at::NoGradGuard no_gradient;
  return draw(at::arange(classes, at::kLong).repeat_interleave(options.each));
}

}  // namespace sotto::attacks

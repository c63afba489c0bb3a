// Gradients against central differences, in double precision.
#include "tasks.h"

#include <ATen/ATen.h>

#include <gtest/gtest.h>

namespace sotto::models {
namespace {

constexpr double kStep = 1e-7;  // small, so that hardly any ReLU changes sides
constexpr int kProbes = 3;      // entries checked of each parameter

double loss(Model& model, const at::Tensor& x, const at::Tensor& y) {
  const at::NoGradGuard no_grad;
  return at::cross_entropy_loss(model.logits(x), y).item<double>();
}

void expect_right_gradients(Model& model, const at::Tensor& x, const at::Tensor& y) {
  model.to(at::kDouble);
  model.eval();
  at::cross_entropy_loss(model.logits(x), y).backward();
  RandomStream random(5, "probes");
  for (auto& parameter : model.named_parameters()) {
    ASSERT_TRUE(parameter.value().grad().defined()) << parameter.key();
    at::Tensor values = parameter.value().detach().view(-1);
    const at::Tensor gradient = parameter.value().grad().reshape(-1);
    for (int probe = 0; probe < kProbes; ++probe) {
      const auto i = static_cast<int64_t>(random.below(static_cast<uint64_t>(values.numel())));
      const double value = values[i].item<double>();
      values[i] = value + kStep;
      const double above = loss(model, x, y);
      values[i] = value - kStep;
      const double below = loss(model, x, y);
      values[i] = value;
      const double expected = (above - below) / (2.0 * kStep);
      EXPECT_NEAR(gradient[i].item<double>(), expected, 1e-6 + 1e-4 * std::abs(expected))
          << parameter.key() << " " << i;
    }
  }
}

// All parameters moved at once along a random direction: for models too large to probe entry by entry.
void expect_right_slopes(Model& model, const at::Tensor& x, const at::Tensor& y) {
  model.to(at::kDouble);
  model.eval();
  at::cross_entropy_loss(model.logits(x), y).backward();
  const at::NoGradGuard no_grad;
  const at::Generator generator = RandomStream(6, "directions").torch_generator();
  for (int probe = 0; probe < kProbes; ++probe) {
    double slope = 0.0;
    std::vector<at::Tensor> directions;
    for (const auto& parameter : model.parameters()) {
      // Of length one in each parameter, however many entries it has.
      const double scale = 1.0 / std::sqrt(static_cast<double>(parameter.numel()));
      directions.push_back(at::empty_like(parameter).normal_(0.0, scale, generator));
      slope += (parameter.grad() * directions.back()).sum().item<double>();
    }
    const auto move = [&](double step) {
      size_t i = 0;
      for (auto& parameter : model.parameters()) parameter.add_(directions[i++], step);
    };
    move(kStep);
    const double above = loss(model, x, y);
    move(-2.0 * kStep);
    const double below = loss(model, x, y);
    move(kStep);
    EXPECT_NEAR(slope, (above - below) / (2.0 * kStep), 1e-4 * std::abs(slope) + 1e-6);
  }
}

using Check = void (*)(Model& model, const at::Tensor& x, const at::Tensor& y);

void check_images(const models::ModelOptions& options, int64_t channels, int64_t size,
                  Check check = expect_right_gradients) {
  SCOPED_TRACE(options.name);
  const auto model = make(options, image_task(channels, size, 3));
  const at::Tensor x = at::empty({2, channels, size, size}, at::kDouble)
                           .uniform_(-1.0, 1.0, RandomStream(7, "images").torch_generator());
  check(*model, x, at::tensor({0, 2}, at::kLong));
}

TEST(Gradients, LogisticAndMlp) {
  check_images(named("logistic"), 1, 4);
  auto options = named("mlp");
  options.hidden = {6, 5};
  check_images(options, 1, 4);
}

TEST(Gradients, ConvNets) {
  check_images(named("cnn"), 1, 20);
  check_images(named("cnn-pac"), 1, 8);
}

TEST(Gradients, ResNetWithEitherNorm) {
  auto options = named("resnet18");
  check_images(options, 1, 8, expect_right_slopes);
  options.norm = models::Normalisation::kBatch;
  check_images(options, 1, 8, expect_right_slopes);
}

TEST(Gradients, MobileNet) {
  check_images(named("mobilenet-v2"), 3, 32, expect_right_slopes);
}

TEST(Gradients, MiniLm) {
  const auto model = make(named("minilm"), token_task(4, 3));
  const at::Tensor texts = at::tensor({101, 2023, 2003, 102, 101, 102, 0, 0}, at::kLong).view({2, 4});
  expect_right_slopes(*model, texts, at::tensor({0, 2}, at::kLong));
}

TEST(Gradients, VitWithAdapters) {
  auto options = small_vit();
  options.adapter = 3;
  check_images(options, 2, 8);
}

}  // namespace
}  // namespace sotto::models

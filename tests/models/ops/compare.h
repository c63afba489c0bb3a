// Comparing an operator with the at:: operator it stands for: values, gradients, gradients of gradients.
#pragma once

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include <gtest/gtest.h>

#include <functional>
#include <vector>

namespace sotto::models::ops {

using Inputs = std::vector<at::Tensor>;
using Operator = std::function<at::Tensor(const Inputs&)>;

inline at::Tensor random_tensor(at::IntArrayRef shape, int64_t seed, at::ScalarType type = at::kFloat) {
  auto generator = at::make_generator<at::CPUGeneratorImpl>(static_cast<uint64_t>(seed));
  return at::randn(shape, generator, at::kDouble).to(type);
}

inline Inputs leaves(const Inputs& inputs) {
  Inputs out;
  for (const at::Tensor& input : inputs) out.push_back(input.detach().clone().requires_grad_(true));
  return out;
}

inline void expect_close(const at::Tensor& got, const at::Tensor& wanted, const std::string& what) {
  ASSERT_EQ(got.sizes(), wanted.sizes()) << what;
  EXPECT_TRUE(at::allclose(got, wanted, 1e-4, 1e-4, /*equal_nan=*/true))
      << what << " differs by up to " << (got - wanted).abs().max().item<double>();
}

// Runs both on copies of the inputs and compares outputs and the gradients of a random linear function of them.
inline void expect_same(const Inputs& inputs, const Operator& fast, const Operator& reference) {
  const Inputs mine = leaves(inputs), theirs = leaves(inputs);
  const at::Tensor got = fast(mine), wanted = reference(theirs);
  expect_close(got, wanted, "output");
  const at::Tensor weights = random_tensor(wanted.sizes(), 99, wanted.scalar_type());
  got.backward(weights);
  wanted.backward(weights);
  for (size_t i = 0; i < inputs.size(); ++i)
    expect_close(mine[i].grad(), theirs[i].grad(), "gradient " + std::to_string(i));
}

// The same for the gradient of the squared norm of the gradients.
inline void expect_same_second_gradients(const Inputs& inputs, const Operator& fast, const Operator& reference) {
  const auto second = [](const Operator& op, const Inputs& x) {
    const auto first = torch::autograd::grad({op(x).square().sum()}, x, {}, true, true);
    at::Tensor norm = at::zeros({}, x[0].options());
    for (const at::Tensor& gradient : first) norm = norm + gradient.square().sum();
    return torch::autograd::grad({norm}, x);
  };
  const auto got = second(fast, leaves(inputs)), wanted = second(reference, leaves(inputs));
  for (size_t i = 0; i < inputs.size(); ++i)
    EXPECT_TRUE(at::allclose(got[i], wanted[i], 1e-3, 1e-3 * wanted[i].abs().max().item<double>()));
}

// Central differences in double precision.
inline void expect_true_gradients(const Inputs& inputs, const Operator& op) {
  constexpr double kStep = 1e-6;
  const Inputs x = leaves(inputs);
  const at::Tensor output = op(x);
  const at::Tensor weights = random_tensor(output.sizes(), 99, at::kDouble);
  output.backward(weights);
  const at::NoGradGuard no_grad;
  for (const at::Tensor& input : x) {
    const at::Tensor flat = input.detach().view(-1), gradient = input.grad().contiguous().view(-1);
    for (int64_t i = 0; i < flat.size(0); ++i) {
      const double value = flat[i].item<double>();
      flat[i].fill_(value + kStep);
      const double above = (op(x) * weights).sum().item<double>();
      flat[i].fill_(value - kStep);
      const double below = (op(x) * weights).sum().item<double>();
      flat[i].fill_(value);
      EXPECT_NEAR(gradient[i].item<double>(), (above - below) / (2 * kStep), 1e-5);
    }
  }
}

}  // namespace sotto::models::ops

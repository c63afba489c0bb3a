// Clipping the slow way: one example at a time through the plain forward and backward pass.
#pragma once

#include "models/flat.h"
#include "models/model.h"
#include "privacy/dpsgd/clipper.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

namespace sotto::privacy {

struct Case {
  std::shared_ptr<models::Model> model;
  models::FlatParameters flat;
  at::Tensor x, y;
};

inline Case make_case(const models::ModelOptions& options, const models::Task& task, int64_t batch, uint64_t seed = 3) {
  RandomStream init(seed, "dpsgd-test");
  Case made{models::make_model(options, task, init), {}, {}, {}};
  made.flat = models::FlatParameters(*made.model);
  at::Generator generator = init.torch_generator();
  std::vector<int64_t> shape = {batch};
  shape.insert(shape.end(), task.record_shape.begin(), task.record_shape.end());
  made.x = task.tokens ? at::randint(0, 40, shape, generator, at::kLong) : at::empty(shape).uniform_(-1, 1, generator);
  made.y = at::randint(0, task.classes, {batch}, generator, at::kLong);
  return made;
}

// [examples, parameters]: the gradient of every example's loss.
inline at::Tensor gradients_one_by_one(Case& c, const PerExampleLoss& loss = cross_entropy) {
  at::Tensor rows = at::empty({c.x.size(0), c.flat.values().numel()});
  for (int64_t i = 0; i < c.x.size(0); ++i) {
    c.flat.zero_gradient();
    loss(c.model->logits(c.x.narrow(0, i, 1)), c.y.narrow(0, i, 1)).sum().backward();
    rows[i] = c.flat.gradient();
  }
  c.flat.zero_gradient();
  return rows;
}

inline double middle(const at::Tensor& values) {
  return values.median().item<double>() * 1.0001;
}

// In double precision, and by BLAS: at::norm takes ten times as long.
inline double length_of(const at::Tensor& vector) {
  const at::Tensor doubles = vector.to(at::kDouble);
  return std::sqrt(at::dot(doubles, doubles).item<double>());
}

inline at::Tensor norms_of(const at::Tensor& gradients) {
  std::vector<double> norms;
  for (int64_t i = 0; i < gradients.size(0); ++i) norms.push_back(length_of(gradients[i]));
  return at::tensor(norms, at::kDouble);
}

inline at::Tensor clipped_sum(const at::Tensor& gradients, double bound) {
  const at::Tensor factors = (bound / norms_of(gradients)).clamp_max(1.0);
  at::Tensor sum = at::zeros({gradients.size(1)}, at::kDouble);
  for (int64_t i = 0; i < gradients.size(0); ++i) sum.add_(gradients[i], factors[i].item<double>());
  return sum;
}

// The largest relative difference of any parameter's part; names it in `worst`.
inline double difference(const Case& c, const at::Tensor& expected, std::string* worst = nullptr) {
  double largest = 0.0;
  const double whole = length_of(expected);
  NamedTensors all = c.model->shared_parameters();
  for (auto& parameter : c.model->personal_parameters()) all.push_back(parameter);
  for (const auto& [name, value] : all) {
    const int64_t offset = value.data_ptr<float>() - c.flat.values().data_ptr<float>();
    const at::Tensor want = expected.narrow(0, offset, value.numel());
    const at::Tensor have = c.flat.gradient().narrow(0, offset, value.numel()).to(at::kDouble);
    // Some parameters have no gradient but rounding noise (a bias before a normalisation): the whole sum is the scale.
    const double scale = std::max(length_of(want), 1e-4 * whole);
    const double found = length_of(have - want) / std::max(scale, 1e-30);
    if (found <= largest) continue;
    largest = found;
    if (worst) *worst = name;
  }
  return largest;
}

}  // namespace sotto::privacy

#include "library/boundary.h"
#include "privacy/accounting/accountant.h"
#include "privacy/accounting/calibrate.h"

#include <sotto/accounting.h>

#include <cmath>

namespace sotto {
namespace {

using sotto::to_engine;

privacy::Step::Kind to_engine(Mechanism mechanism) {
  switch (mechanism) {
    case Mechanism::kGaussian:
      return privacy::Step::Kind::kGaussian;
    case Mechanism::kLaplace:
      return privacy::Step::Kind::kLaplace;
    case Mechanism::kDiscreteGaussian:
      return privacy::Step::Kind::kDiscreteGaussian;
  }
  fail_user("there is no such mechanism: {}", static_cast<int>(mechanism));
}

privacy::Steps to_engine(const Steps& steps) {
  privacy::Step step;
  step.kind = to_engine(steps.mechanism);
  step.noise_multiplier = steps.noise_multiplier;
  step.sampling_rate = steps.sampling_rate;
  step.adjacency = to_engine(steps.adjacency);
  step.batches = steps.batches;
  return {step, steps.count};
}

std::vector<privacy::Steps> to_engine(const std::vector<Steps>& steps) {
  std::vector<privacy::Steps> all;
  for (const Steps& some : steps) all.push_back(to_engine(some));
  return all;
}

privacy::Method method_for(const std::vector<privacy::Steps>& steps, const std::string& name) {
  return name.empty() ? privacy::default_method(steps) : privacy::method_from_text(name);
}

std::unique_ptr<privacy::Accountant> accountant_of(const std::vector<Steps>& steps, const std::string& method) {
  const std::vector<privacy::Steps> all = to_engine(steps);
  if (all.empty()) fail_user("there are no steps to account for");
  privacy::require_valid(all);
  auto accountant = privacy::make_accountant(method_for(all, method));
  for (const privacy::Steps& some : all) accountant->compose(some.step, some.count);
  return accountant;
}

}  // namespace

double epsilon_of(const std::vector<Steps>& steps, double delta, const std::string& method) {
  return for_program([&] {
    privacy::require_valid_delta(delta);
    const double epsilon = accountant_of(steps, method)->epsilon(delta);
    if (!std::isfinite(epsilon)) fail_user("there is no finite epsilon at delta {}", delta);
    return epsilon;
  });
}

double delta_of(const std::vector<Steps>& steps, double epsilon, const std::string& method) {
  return for_program([&] {
    privacy::require_valid_epsilon(epsilon);
    return accountant_of(steps, method)->delta(epsilon);
  });
}

double calibrate(double epsilon, double delta, const Steps& steps, const std::vector<Steps>& others,
                 const std::string& method) {
  return for_program([&] {
    privacy::Steps shape = to_engine(steps);
    shape.step.noise_multiplier = 1;
    const std::vector<privacy::Steps> rest = to_engine(others);
    std::vector<privacy::Steps> all = rest;
    all.push_back(shape);
    privacy::require_valid(all);
    return privacy::calibrate({epsilon, delta, method_for(all, method)}, shape.step, shape.count, rest);
  });
}

}  // namespace sotto

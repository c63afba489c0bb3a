#include "privacy/dpsgd/samplers.h"

#include "base/error.h"
#include "privacy/noise/uniform.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

namespace sotto::privacy {
namespace {

at::Tensor as_tensor(const std::vector<int64_t>& values) {
  return at::tensor(values, at::kLong);
}

void check_records(int64_t records) {
  if (records < 0) fail_user("sampling: the number of records must not be negative, it is {}", records);
}

// Fisher and Yates.
at::Tensor in_random_order(std::vector<int64_t> positions, NoiseSource& secret) {
  for (size_t left = positions.size(); left > 1; --left) {
    std::swap(positions[left - 1], positions[uniform_below(left, secret)]);
  }
  return as_tensor(positions);
}

void check_rate(double rate) {
  if (!(rate > 0.0 && rate <= 1.0)) fail_user("sampling: a rate must be above 0 and at most 1, not {}", rate);
}

}  // namespace

at::Tensor poisson_batch(int64_t records, double rate, NoiseSource& secret) {
  check_records(records);
  check_rate(rate);
  return in_random_order(poisson_sample(records, rate, secret), secret);
}

at::Tensor poisson_batch(const std::vector<double>& rates, NoiseSource& secret) {
  std::vector<int64_t> chosen;
  for (size_t i = 0; i < rates.size(); ++i) {
    check_rate(rates[i]);
    if (bernoulli(rates[i], secret)) chosen.push_back(static_cast<int64_t>(i));
  }
  return in_random_order(std::move(chosen), secret);
}

std::vector<at::Tensor> sliced_epoch(int64_t records, int64_t batch, RandomStream& stream) {
  check_records(records);
  if (batch < 1) fail_user("sampling: a batch must have at least one record, not {}", batch);
  const at::Tensor order = as_tensor(stream.permutation(records));
  std::vector<at::Tensor> batches;
  for (int64_t begin = 0; begin < records; begin += batch)
    batches.push_back(order.narrow(0, begin, std::min(batch, records - begin)));
  return batches;
}

std::vector<at::Tensor> scattered_epoch(int64_t records, int64_t batches, NoiseSource& secret) {
  check_records(records);
  if (batches < 1) fail_user("sampling: an epoch must have at least one batch, not {}", batches);
  std::vector<std::vector<int64_t>> members(static_cast<size_t>(batches));
  for (int64_t i = 0; i < records; ++i) members[uniform_below(members.size(), secret)].push_back(i);
  std::vector<at::Tensor> found;
  for (auto& batch : members) found.push_back(in_random_order(std::move(batch), secret));
  return found;
}

}  // namespace sotto::privacy

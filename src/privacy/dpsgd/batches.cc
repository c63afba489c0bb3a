#include "privacy/dpsgd/batches.h"

#include "privacy/dpsgd/samplers.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

namespace sotto::privacy {

int64_t batches_per_epoch(const DescentPlan& plan) {
  return std::max<int64_t>(1, (plan.records + plan.batch - 1) / plan.batch);
}

int64_t steps_per_epoch(const DescentPlan& plan) {
  if (plan.sampling != Sampling::kPoisson) return batches_per_epoch(plan);
  return static_cast<int64_t>(std::ceil(1.0 / plan.rate - 1e-9));
}

Batches::Batches(const DescentPlan& plan, const at::Tensor& indices, const Receipt& receipt,
                 const ReleaseContext& context)
    : plan_(plan),
      records_(indices.size(0)),
      secret_(context.noise_source(receipt, "batches")),
      order_(secret_.bits(), "batch-order") {
  if (!plan.record_rates) return;
  const RecordRates& known = *plan.record_rates;
  const at::Tensor rows = indices.contiguous();
  for (int64_t i = 0; i < records_; ++i) rates_.push_back(known.rates[known.of(rows.data_ptr<int64_t>()[i])]);
}

std::vector<at::Tensor> Batches::next_epoch() {
  if (plan_.sampling == Sampling::kPoisson) {
    std::vector<at::Tensor> batches;
    for (int64_t i = 0; i < steps_per_epoch(plan_); ++i) {
      batches.push_back(plan_.record_rates ? poisson_batch(rates_, secret_)
                                           : poisson_batch(records_, plan_.rate, secret_));
    }
    return batches;
  }
  if (plan_.allocates()) {
    return scattered_epoch(records_, batches_per_epoch(plan_), secret_);
  }
  return sliced_epoch(records_, plan_.batch, order_);
}

}  // namespace sotto::privacy

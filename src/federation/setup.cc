#include "federation/setup.h"

#include "base/log.h"
#include "federation/cohort.h"
#include "methods/catalogue.h"

#include <algorithm>

namespace sotto::federation {

namespace {

// A δ of 1/n lets a mechanism publish one whole record and still keep its promise.
void warn_of_large_delta(const config::RunSpec& spec, int64_t train_records) {
  if (!spec.privacy) return;
  const bool clients = spec.privacy->unit == "client";
  const int64_t n = clients ? spec.data.clients : std::max<int64_t>(1, train_records / spec.data.clients);
  if (spec.privacy->delta * static_cast<double>(n) <= 1) return;
  warn("privacy.delta = {} is more than 1/{}, one in the {}: at such a δ even giving a {} away whole would be allowed",
       spec.privacy->delta, n, clients ? "number of clients" : "records of an average client", spec.privacy->unit);
}

int64_t least_records(const data::Partition& partition, const config::DataOptions& options) {
  const int64_t different = options.partition == "resample" ? 1 : partition.clients();
  int64_t least = partition.shard(0).size();
  for (int64_t client = 1; client < different; ++client) least = std::min(least, partition.shard(client).size());
  return least;
}

}  // namespace

Setup prepare(const config::RunSpec& spec) {
  models::TaskDataCache unshared;
  return prepare(spec, unshared);
}

Setup prepare(const config::RunSpec& spec, models::TaskDataCache& cache) {
  Setup setup;
  setup.spec = spec;
  setup.method = &methods::find_method(spec.method);
  setup.data = cache.load(spec.data, spec.model, spec.seed);
  setup.partition = data::make_partition(spec.data, setup.data.dataset, spec.seed);
  if (setup.method->uses_model) {
    RandomStream init(spec.seed, "model-init");
    models::make_model(spec.model, setup.data.task, init);
  }
  setup.participations = count_participations(spec);
  setup.plan_for(0);
  warn_of_large_delta(spec, setup.data.dataset.train.size());
  return setup;
}

methods::MethodContext Setup::context() const {
  return {spec, data, participations, [this] { return least_records(*partition, spec.data); }};
}

methods::ReleasePlan Setup::plan_for(int64_t client) const {
  return method->plan(context(), {partition->shard(client).size(), participations[static_cast<size_t>(client)],
                                  spec.privacy ? spec.privacy->budget_of(client) : 0.0});
}

}  // namespace sotto::federation

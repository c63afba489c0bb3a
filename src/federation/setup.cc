#include "federation/setup.h"

#include "federation/cohort.h"
#include "methods/catalogue.h"

namespace sotto::federation {

Setup prepare(const config::RunSpec& spec) {
  Setup setup;
  setup.spec = spec;
  setup.method = &methods::find_method(spec.method);
  setup.data = models::load_task_data(spec.data, spec.model, spec.seed);
  setup.partition = data::make_partition(spec.data, setup.data.dataset, spec.seed);
  RandomStream init(spec.seed, "model-init");
  models::make_model(spec.model, setup.data.task, init);
  setup.participations = count_participations(spec);
  setup.plan_for(0);
  return setup;
}

methods::ReleasePlan Setup::plan_for(int64_t client) const {
  return method->plan(context(),
                      {partition->shard(client).size(), participations[static_cast<size_t>(client)]});
}

}  // namespace sotto::federation

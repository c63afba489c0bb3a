// Everything a run needs, checked before anything is written: data, partition, method.
#pragma once

#include "config/run_spec.h"
#include "data/partition.h"
#include "methods/method.h"
#include "models/task_data.h"

#include <memory>
#include <vector>

namespace sotto::federation {

struct Setup {
  config::RunSpec spec;
  models::TaskData data;
  std::unique_ptr<data::Partition> partition;
  const methods::MethodEntry* method = nullptr;
  std::vector<int32_t> participations;

  methods::MethodContext context() const;
  // What `client` will release over the run.
  methods::ReleasePlan plan_for(int64_t client) const;
};

// Loads the data, deals it, and builds the model once to see that it fits. Every mistake in the spec that only shows
// against real data or models is a UserError from here.
Setup prepare(const config::RunSpec& spec);
// The same for one of several runs.
Setup prepare(const config::RunSpec& spec, models::TaskDataCache& cache);

}  // namespace sotto::federation

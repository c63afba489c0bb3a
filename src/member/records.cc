#include "member/records.h"

#include "federation/public_claims.h"

namespace sotto::member {

std::shared_ptr<const models::TaskData> load_records(const Policy& policy, const federation::FederationPlan& plan) {
  const config::RunSpec& spec = plan.setup().spec();
  data::DataOptions options = policy.data;
  options.schema = spec.data.schema;
  options.features = spec.data.features;
  options.project_on = spec.data.project_on;
  options.project = spec.data.project;
  options.centre = spec.data.centre;
  options.normalise = spec.data.normalise;
  options.image_size = spec.data.image_size;
  federation::refuse_own_data_as_public(spec, options);
  return std::make_shared<const models::TaskData>(models::load_task_data(options, spec.model, spec.seed));
}

}  // namespace sotto::member

// The records of a home, where its policy says they are.
#pragma once

#include "federation/federation_plan.h"
#include "member/policy.h"
#include "models/task_data.h"

#include <memory>

namespace sotto::member {

// As the plan wants them.
std::shared_ptr<const models::TaskData> load_records(const Policy& policy, const federation::FederationPlan& plan);

}  // namespace sotto::member

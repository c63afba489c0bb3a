// What a federation's plan means for somebody who would take part in it.
#pragma once

#include "federation/federation_plan.h"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <string>

namespace sotto::cli {

// Every release, how often, and what it costs over the whole federation, for a client with so many records.
std::string describe_plan(const federation::FederationPlan& plan, int64_t client, int64_t records);
nlohmann::json plan_cost(const federation::FederationPlan& plan, int64_t client, int64_t records);

}  // namespace sotto::cli

// A config as a federation between machines.
#pragma once

#include "federation/federation_plan.h"
#include "run/config_source.h"

namespace sotto::cli {

// What its server would serve. A config without [declared] is a UserError.
federation::FederationPlan load_plan(const run::ConfigSource& source);

}  // namespace sotto::cli

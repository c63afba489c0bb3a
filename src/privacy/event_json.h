// A row of a ledger as JSON, for another process to keep.
#pragma once

#include "privacy/event.h"

#include <nlohmann/json_fwd.hpp>

namespace sotto::privacy {

nlohmann::json to_json(const Event& event);
// Of what to_json gave. Anything else is a UserError: it may come from outside.
Event event_from(const nlohmann::json& value);

}  // namespace sotto::privacy

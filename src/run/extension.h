// A finished run that is to have more rounds.
//
// What comes out is what a run with that many rounds from the start would have given: noise that was calibrated for fewer
// rounds cannot be used for more, and is refused.
#pragma once

#include "federation/setup.h"

#include <filesystem>

namespace sotto::run {

// A UserError that says what to do, if the run in `folder` was begun with fewer rounds than `setup` and otherwise the
// same settings, and cannot be extended to them. Changes nothing. Runs with the very same settings, or with others, are no
// concern of this function.
void require_extendable(const federation::Setup& setup, const std::filesystem::path& folder);

}  // namespace sotto::run

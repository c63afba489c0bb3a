// What all ranks of a job must have in common before they work on one federation: the program, the settings, the records,
// and the files that the settings name.
#pragma once

#include "federation/setup.h"
#include "transport/ranks.h"

#include <functional>
#include <optional>

namespace sotto::transport {

// Calls `make` at every rank. A setup at every rank if all of them have one, made by the same program of the same
// settings, records and files. Otherwise a UserError at rank 0 that names the host of the first that differs, and nothing
// elsewhere; then the ranks are finished with. Ranks whose processors compute with other instructions than rank 0's are
// warned of: sums may come out differently.
std::optional<federation::Setup> start_together(Ranks& ranks, const std::function<federation::Setup()>& make);

}  // namespace sotto::transport

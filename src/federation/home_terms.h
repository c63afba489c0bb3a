// A run and the home that pays for it (privacy/home.h).
#pragma once

#include "federation/setup.h"
#include "privacy/home.h"

#include <string>

namespace sotto::federation {

// Whose records the run touches, by content, and who holds which. Reads the data as it is before sizes and transforms.
privacy::HomeRecords home_records(const Setup& setup);

// A UserError unless the run can be charged to the home: other neighbours than the home promises, or a release of which
// nothing can be proven before the home's observer. Where a trusted server releases for its clients, they cannot
// abstain once they have handed over their updates: then all that is planned must fit into every client's budget now.
// `run` is what the run is called there if it has begun, else "".
void require_home_allows(const Setup& setup, privacy::Home& home, const std::string& run);

}  // namespace sotto::federation

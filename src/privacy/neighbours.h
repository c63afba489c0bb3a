// Which two worlds a guarantee compares.
#pragma once

#include "config/run_spec.h"
#include "privacy/accounting/step.h"

namespace sotto::privacy {

// What may differ: one record of a client, or all that a client holds.
enum class Unit { kRecord, kClient };

struct Neighbours {
  Adjacency adjacency = Adjacency::kReplace;
  Unit unit = Unit::kRecord;

  bool operator==(const Neighbours&) const = default;
};

Neighbours neighbours_of(const config::PrivacyOptions& options);

// How far a sum of vectors of norm ≤ bound moves when one of them changes: bound if it appears or disappears, twice
// that if it becomes another.
double sum_sensitivity(double bound, Adjacency adjacency);

}  // namespace sotto::privacy

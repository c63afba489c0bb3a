// Which two worlds a guarantee compares.
#pragma once

#include "privacy/accounting/step.h"
#include "settings/choice.h"

#include <array>
#include <string>

namespace sotto::privacy {

// What may differ: one record of a client, or all that a client holds.
enum class Unit { kRecord, kClient };
constexpr auto choices(Unit) {
  return std::to_array<settings::Choice<Unit>>({{Unit::kRecord, "record"}, {Unit::kClient, "client"}});
}
constexpr auto choices(Adjacency) {
  return std::to_array<settings::Choice<Adjacency>>({{Adjacency::kAddRemove, "add-remove"},
                                                     {Adjacency::kZeroOut, "zero-out"},
                                                     {Adjacency::kReplace, "replace"},
                                                     {Adjacency::kReplaceSameLabel, "replace-same-label"}});
}

struct Neighbours {
  Adjacency adjacency = Adjacency::kReplace;
  Unit unit = Unit::kRecord;

  bool operator==(const Neighbours&) const = default;
};

// One sentence for people: what may differ, and what everybody may know.
std::string describe(const Neighbours& neighbours);

// How far a sum of vectors of norm ≤ bound moves when one of them changes: bound if it appears or disappears, twice
// that if it becomes another.
double sum_sensitivity(double bound, Adjacency adjacency);

}  // namespace sotto::privacy

// How many of somebody's held-out records a model gets right, with its sensitivity.
// Proof: docs/proofs/released-evaluation.md
#pragma once

#include "privacy/bounded.h"

namespace sotto::privacy {

inline constexpr const char* kRightCount = "right";

// The bounds of that count: one record that is there instead of another is right or not, and moves it by 1.
Group right_count_group();

// `marks` is one tensor, a number per record: how many of them are not 0. The model that made them must be public or
// made of paid releases alone, and the number of records must not depend on them: so one record moves one mark.
Bounded count_right(Contribution&& marks);

}  // namespace sotto::privacy

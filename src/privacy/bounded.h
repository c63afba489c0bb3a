// Values computed from private records, before and after their sensitivity has been constrained.
//
//   Contribution   tensors computed from private records. No accessor outside this folder; cannot be serialised.
//   Bounded        a contribution whose sensitivity is known, group by group. Made only by clip_each, clip_whole,
//                  clamp_each, count_each, sum_cells and by per-example clipping. Cannot be serialised either.
//   BoundedSum     at a trusted server: the sum of what clients handed over.
//   PrivateState   personal weights and optimiser state. The client's own state store may write it; it is never a
//                  message.
//
// Proofs: docs/proofs/whole-updates.md, cell-sums.md
#pragma once

#include "base/named_tensors.h"
#include "privacy/neighbours.h"

#include <cstdint>
#include <string>
#include <vector>

namespace sotto::privacy {

class Contribution {
 public:
  explicit Contribution(NamedTensors values) : values_(std::move(values)) {}
  Contribution(Contribution&&) = default;
  Contribution& operator=(Contribution&&) = default;
  Contribution(const Contribution&) = delete;
  Contribution& operator=(const Contribution&) = delete;

 private:
  friend class Access;
  NamedTensors values_;
};

class PrivateState {
 public:
  PrivateState() = default;
  explicit PrivateState(NamedTensors values) : values_(std::move(values)) {}
  bool empty() const { return values_.empty(); }
  const NamedTensors& values() const { return values_; }

 private:
  NamedTensors values_;
};

// kJoint: ℓ2 over all groups together, each measured in its own Δ_g: one change moves group g by x_g·Δ_g with Σ x_g²
// ≤ 1.
enum class Norm { kL1, kL2, kMax, kJoint };

// A run of consecutive tensors that are bounded and noised together.
struct Group {
  std::string name;
  int64_t tensors = 0;      // how many of the contribution's tensors, in order
  int64_t coordinates = 0;  // how many numbers they hold
  double sensitivity = 0;   // how far one change may move them, in the contribution's norm

  bool operator==(const Group&) const = default;
};

template <typename T>
class Trusted;

class Bounded {
 public:
  const std::vector<Group>& groups() const { return groups_; }
  Norm norm() const { return norm_; }
  Bounded(Bounded&&) = default;
  Bounded& operator=(Bounded&&) = default;
  Bounded(const Bounded&) = delete;
  Bounded& operator=(const Bounded&) = delete;

 private:
  friend class Access;
  friend class Trusted<Bounded>;
  Bounded(NamedTensors values, std::vector<Group> groups, Norm norm)
      : values_(std::move(values)), groups_(std::move(groups)), norm_(norm) {}
  NamedTensors values_;
  std::vector<Group> groups_;
  Norm norm_;
};

// Bounds the next `tensors` tensors of a contribution, taken together, by `bound`.
struct ClipRule {
  std::string name;
  int64_t tensors = 0;
  double bound = 0;
};

// Per-record vectors (every tensor is [records, …]): each record's vector is scaled to norm ≤ bound in every group,
// then summed over records, in doubles, and divided by the public constant `divisor`. Δ = bound/divisor, twice that unless
// add-remove. A record with a non-finite entry counts as zero. Unit: record.
Bounded clip_each(Contribution&& per_record, const std::vector<ClipRule>& rules, double divisor, Adjacency adjacency,
                  Norm norm = Norm::kL2);

// Anything else computed from a client's records, scaled to norm ≤ bound in every group. One record may change all of
// it: Δ = 2·bound for records, whatever their adjacency; for whole clients bound (add-remove) or 2·bound. A group with
// a non-finite entry becomes zero.
Bounded clip_whole(Contribution&& whole, const std::vector<ClipRule>& rules, const Neighbours& neighbours,
                   Norm norm = Norm::kL2);

// Scores clamped to [0, high], NaN to 0: any change moves every coordinate by at most `high` (Norm::kMax).
Bounded clamp_each(Contribution&& scores, double high);

// How many records each class has, from labels in [0, classes). One record more or less moves one count by 1; another
// label moves two: Δ = √2; a record of the same label moves none, and Δ = 0.
Bounded count_each(Contribution&& labels, int64_t classes, Adjacency adjacency);

// Sums of records that lie in disjoint cells: classes, or clusters around public centres.
struct CellRule {
  int64_t cells = 0;
  bool by_label = true;  // a record's label alone decides its cell
  Adjacency adjacency = Adjacency::kReplace;
  // Each record's vector falls into groups of coordinates, and every group is scaled to its own bound.
  struct Part {
    std::string name = {};
    int64_t width = 0;
    double bound = 0;
    double weight = 1;  // relative: the noise of a part goes down with its root
  };
  std::vector<Part> parts = {};
  double count_share = 0.1;  // add-remove only: what counting costs of 1/z²

  // The parts' sums ([cells, width] each), then how many records each cell has, bounded together (Norm::kJoint).
  //
  // With weights ω that sum to 1, one change moves part g by at most √ω_g Δ_g in all, Δ_g = 2 bound/√ω_g, if it stays
  // in its cell, and by half of its square if it goes to another, when two counts of Δ = 2 move by 1: either way all
  // that may be spent, so counts are free. Where the label histogram is public and decides the cell, counts have Δ = 0.
  // Under add-remove one sum and one count move: Δ_g = bound/√(ω_g(1 - share)), Δ = 1/√share.
  std::vector<Group> groups() const;
};

// One tensor [records, width] per part and a last one, int64 [records]: the cells. A record with a non-finite entry in
// a part adds nothing there; where a record may be blank it is one, and is not counted either.
Bounded sum_cells(Contribution&& per_record, const CellRule& rule);

}  // namespace sotto::privacy

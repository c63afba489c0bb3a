// Records that are easy to find again: what the two worlds of an audit differ in.
#pragma once

#include "data/dataset.h"
#include "privacy/neighbours.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace sotto::audit {

// A record as a model sees it: images as floats in [-1, 1].
struct Record {
  at::Tensor x;
  int64_t label = 0;
};

// What becomes of a record in a world; nothing means that it is not there.
using Edit = std::function<std::optional<Record>(const Record& record)>;

struct Canary {
  std::string name;  // "opposite, label 2"
  Edit without;
  Edit with;
};

// Pairs worth trying under an adjacency: under add-remove and zero-out the canary is not there in one world (what that
// means is for whoever makes the worlds); under replace it becomes another record, under replace-same-label of its label.
std::vector<Canary> canaries(const data::Dataset& dataset, privacy::Adjacency adjacency);

// A record that no model learns anything from where each record is bounded by itself: its gradient is not a number,
// counts as zero, and stands for a record that is not there while the declared number of records stays what it is.
Record blank(const Record& record);

}  // namespace sotto::audit

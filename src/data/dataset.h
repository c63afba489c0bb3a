// A labelled dataset in memory: what readers produce, partitioners split and clients train on.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace sotto::data {

enum class Kind {
  kImages,    // x: uint8 [N, channels, height, width]
  kFeatures,  // x: float32 [N, dimensions]; tables and pre-extracted features
  kText,      // x: undefined; the strings are in `texts`
  kTokens,    // x: int64 [N, length], 0 = padding
};

// Records of one split. Row i of x (or texts[i]) has label y[i] and domain domain[i].
struct Records {
  at::Tensor x;
  at::Tensor y;                    // int64 [N], in [0, classes)
  at::Tensor domain;               // int64 [N], in [0, domains)
  std::vector<std::string> texts;  // kText only

  int64_t size() const { return y.defined() ? y.size(0) : 0; }
};

struct Dataset {
  std::string name;
  Kind kind = Kind::kImages;
  std::vector<std::string> class_names;
  std::vector<std::string> domain_names;  // at least one
  Records train;
  Records test;                  // may be empty: partitioners then hold out part of each client's records
  bool schema_inferred = false;  // a table whose columns were scaled by what all its records hold

  int64_t classes() const { return static_cast<int64_t>(class_names.size()); }
  int64_t domains() const { return static_cast<int64_t>(domain_names.size()); }
  // Shape of one record as a model sees it: {C, H, W}, {D} or {L}.
  std::vector<int64_t> record_shape() const;
};

// Throws a UserError unless sizes agree, labels and domains are in range, and features are finite. Every reader's last
// act.
void validate(const Dataset& dataset);

// A mini-batch as a model sees it: images as float32 in [-1, 1], features and tokens as they are.
struct Batch {
  at::Tensor x;
  at::Tensor y;
};

// The records at `indices` (int64 [B]). Reuses `batch`'s storage where shapes allow it.
void gather(const Records& records, const at::Tensor& indices, Batch& batch);

}  // namespace sotto::data

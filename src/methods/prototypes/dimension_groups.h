// VPP: which dimensions of prototypes are in group A, and how much of the noise each group gets.
#pragma once

#include "methods/method.h"
#include "methods/prototypes/prototype_set.h"
#include "methods/prototypes/release_prices.h"

#include <functional>
#include <vector>

namespace sotto::methods {

// What prototypes are made of.
struct PrototypeShape {
  int64_t width = 0;    // d
  int64_t classes = 0;  // C
  int64_t anchors = 1;  // sound: cells per class

  int64_t cells() const { return classes * anchors; }
};

// One client's records in the space of the prototypes. Private.
struct LabelledFeatures {
  at::Tensor values;  // float [n, d]
  at::Tensor labels;  // int64 [n]
  at::Tensor cells;   // int64 [n]: sound, the record's cell; otherwise its cluster among all of the client's
  // As printed, clusters are found after clipping: from such values to `cells`.
  std::function<at::Tensor(const at::Tensor& clipped)> cluster = {};
};

struct DimensionGroups {
  at::Tensor first;   // A; undefined if there is one group only
  double weight = 1;  // ω of A
};

// The dimensions that are not among `first`.
at::Tensor rest_of(const at::Tensor& first, int64_t width);

// Where the row of a release in two groups notes the dimensions of the first; they are chosen in public, or released.
inline constexpr const char* kDimensionsNoted = "dimensions";
std::vector<double> numbers_of(const at::Tensor& dimensions);

class DimensionChooser {
 public:
  DimensionChooser(const PublicContext& context, const ReleaseOptions& options, const PrototypeShape& shape,
                   const ReleasePrices& prices);

  // Pays for a selection that reads private scores. `global` is what the server has sent; `remembered` are the dimensions
  // of an earlier release of this client.
  DimensionGroups choose(const LabelledFeatures& records, const PrototypeSet& global, const at::Tensor& remembered,
                         const ClientFacts& client, const privacy::ReleaseContext& context) const;

  // What choosing releases.
  std::vector<privacy::Channel> channels(const ClientFacts& client) const;

 private:
  int64_t first_width() const;
  double paper_weight() const;
  privacy::Channel oracle_channel(const ClientFacts& client) const;
  bool picks_by_gumbel() const;
  privacy::Channel selection_channel(const ClientFacts& client) const;
  at::Tensor select_privately(const LabelledFeatures& records, const ClientFacts& client,
                              const privacy::ReleaseContext& context) const;

  const RunSettings& spec_;
  ReleaseOptions options_;
  PrototypeShape shape_;
  const ReleasePrices& prices_;
};

}  // namespace sotto::methods

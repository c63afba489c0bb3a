// Uploads as bytes, and back: the one door through which values of another process come in.
//
//   safetensors: the upload's tensors by name; metadata: content = "release" or "trusted"
//
// Whatever comes in is checked here against what the method expects: names, types, shapes, finite values, limits. So
// nothing foreign ever meets an invariant behind this door.
#pragma once

#include "privacy/release.h"

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace sotto::privacy {

// Any length along a dimension, the same wherever the shapes have it. So is every other number below 0.
inline constexpr int64_t kAnyLength = -1;
inline constexpr int64_t kOtherLength = -2;

struct TensorShape {
  std::string name;
  std::vector<int64_t> sizes = {};  // kAnyLength where it is the sender's choice
  at::ScalarType dtype = at::kFloat;
  bool required = true;
  double least = std::numeric_limits<double>::lowest();  // every value is finite, and within these
  double most = std::numeric_limits<double>::max();
};

// How values for a trusted server are bounded.
struct TrustedBounds {
  std::vector<Group> groups;
  // What each client's value is clipped to, once more, as it comes in. None: the sum over a client's records, whose
  // norm has no bound of its own.
  std::vector<ClipRule> rules = {};
};

struct UploadShape {
  std::vector<TensorShape> tensors;
  std::optional<TrustedBounds> trusted = {};  // otherwise it is a release
};

// The shape of tensors like these.
std::vector<TensorShape> shapes_of(const NamedTensors& values, bool required = true);

// What of the values is not as in these shapes, in one line that may name them; nothing if all is, and nothing else is
// there.
std::optional<std::string> misfit(const NamedTensors& values, const std::vector<TensorShape>& shapes);

// The sender's values are not what the method expects; one line that says why. Nothing was used of them.
class UploadRefused : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

std::string encode(const Upload& upload);

// UploadRefused unless the bytes are an upload of this shape.
Upload decode(std::string bytes, const UploadShape& shape);

}  // namespace sotto::privacy

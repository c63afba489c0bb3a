// Views of a record: several forms of it, whose gradients are averaged before they are bounded.
//
// An image that is moved by a pixel or two is another example to a network, and costs nothing here: the gradient of a
// record is that of the mean loss of its views, and is clipped once (augmentation multiplicity: S. De et al., 2022). All
// records of a step have the same views, drawn from a public seed whether the step has records or not, so that what
// becomes of one depends on no other, and all slots of a pass are treated alike.
//
// Proof: docs/proofs/noisy-descent.md
#pragma once

#include "base/random.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace sotto::privacy {

struct ViewOptions {
  int64_t count = 1;  // the image itself among them
  int64_t shift = 2;  // pixels in each direction, at most; what comes in is like the edge
  bool flip = false;  // left and right, every other time

  bool several() const { return count > 1; }
};

// Those of one step. The first is the image itself.
class Views {
 public:
  Views(const ViewOptions& options, RandomStream& stream);

  size_t size() const { return views_.size(); }
  // Of images [B, channels, height, width].
  at::Tensor of(const at::Tensor& images, size_t which) const;

 private:
  struct View {
    int64_t down = 0, right = 0;
    bool flipped = false;
  };
  int64_t shift_;
  std::vector<View> views_;
};

}  // namespace sotto::privacy

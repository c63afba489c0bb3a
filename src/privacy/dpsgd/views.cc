#include "privacy/dpsgd/views.h"

#include <ATen/ATen.h>

namespace sotto::privacy {

Views::Views(const ViewOptions& options, RandomStream& stream) : shift_(options.shift), views_(1) {
  const auto moved = [&] { return static_cast<int64_t>(stream.below(static_cast<uint64_t>(2 * shift_ + 1))) - shift_; };
  while (static_cast<int64_t>(views_.size()) < options.count) {
    View view{.down = moved(), .right = moved()};
    view.flipped = options.flip && stream.bernoulli(0.5);
    views_.push_back(view);
  }
}

at::Tensor Views::of(const at::Tensor& images, size_t which) const {
  const View& view = views_[which];
  at::Tensor seen = images;
  if (view.down != 0 || view.right != 0) {
    const int64_t height = images.size(2), width = images.size(3);
    seen = at::replication_pad2d(images, {shift_, shift_, shift_, shift_})
               .narrow(2, shift_ - view.down, height)
               .narrow(3, shift_ - view.right, width)
               .contiguous();
  }
  return view.flipped ? seen.flip({3}) : seen;
}

}  // namespace sotto::privacy

#include "methods/prototypes/prototype_release.h"

#include "base/error.h"
#include "methods/parts/averaging.h"
#include "methods/parts/requirements.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace sotto::methods {
namespace {

// Nothing leaves: every client trains alone.
class SilentRelease : public PrototypeRelease {
 public:
  SilentRelease(const PublicContext& context, const ReleaseOptions& options, const PrototypeShape& shape)
      : PrototypeRelease(context, options, shape) {}

  ReleasePlan plan(const ClientFacts&) const override { return {}; }
  Result release(const LabelledFeatures&, const PrototypeSet&, const at::Tensor&, const ClientFacts&,
                 const privacy::ReleaseContext&) const override {
    internal_bug("a silent method releases nothing", __FILE__, __LINE__);
  }
  Result release_centre(const at::Tensor&, const ClientFacts&, const privacy::ReleaseContext&) const override {
    internal_bug("a silent method releases nothing", __FILE__, __LINE__);
  }
  privacy::UploadShape upload_shape(const Broadcast&) const override { return {}; }
};

}  // namespace

PrototypeRelease::PrototypeRelease(const PublicContext& context, const ReleaseOptions& options,
                                   const PrototypeShape& shape)
    : options_(options), shape_(shape), prices_(context, options_), dimensions_(context, options_, shape_, prices_) {}

std::unique_ptr<PrototypeRelease> make_prototype_release(const PublicContext& context, const ReleaseOptions& options,
                                                         const PrototypeShape& shape, bool clusters) {
  const bool printed = context.spec.as_printed();
  if (options.centre && (printed || options.silent())) {
    fail_user("method.centre: only sound methods that send something release a centre; leave it out");
  }
  if (printed && options.selection_noise == SelectionNoise::kGumbel) {
    fail_user("method.selection_noise: the printed selection has Laplace noise; leave it out");
  }
  if (options.silent()) return std::make_unique<SilentRelease>(context, options, shape);
  if (!options.noisy()) return make_clear_release(context, options, shape, clusters);
  require_privacy(context.spec, privacy::Unit::kRecord);
  if (options.parted() && shape.width < 2) fail_user("method.width: mechanism \"vpp\" needs at least 2 dimensions");
  return printed ? make_mean_release(context, options, shape, clusters) : make_sum_release(context, options, shape);
}

void plan_channel(ReleasePlan& plan, privacy::Channel channel, const ClientFacts& client,
                  const privacy::NoiseReach& reach) {
  const int64_t times = std::min(channel.times(), client.participations);
  plan.push_back(channel.times(times, channel.how_often()).reaching(reach));
}

CentreSums centre_of(const NamedTensors& upload) {
  const at::Tensor sum = find_tensor(upload, kCentreName);
  if (!sum.defined()) return {};
  return {sum[0], find_tensor(upload, kCountsName).item<double>()};
}

PrototypeSet prototypes_of(const NamedTensors& upload, const PrototypeShape& shape, double least) {
  const at::Tensor sums = find_tensor(upload, kSumsName);
  if (sums.defined()) {
    const at::Tensor counts = find_tensor(upload, kCountsName);
    const at::Tensor classes = at::arange(shape.cells(), at::kLong).div(shape.anchors, "floor");
    return {sums / counts.clamp_min(std::max(least, 1.0)).unsqueeze(1), classes, counts};
  }
  PrototypeSet set;
  set.values = find_tensor(upload, kPrototypesName);
  set.classes = find_tensor(upload, kClassesName);
  if (!set.classes.defined()) set.classes = at::arange(set.values.size(0), at::kLong);
  set.weights = at::full({set.values.size(0)}, find_tensor(upload, kRecordsName).item<double>(), at::kFloat);
  return set.where(set.values.ne(0).any(1));
}

}  // namespace sotto::methods

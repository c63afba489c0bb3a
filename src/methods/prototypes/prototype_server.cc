#include "methods/prototypes/prototype_server.h"

#include <ATen/ATen.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace sotto::methods {
namespace {

class Server : public ServerMethod {
 public:
  Server(const PublicContext& context, PrototypeMember member)
      : member_(std::move(member)), seed_(context.spec.seed), shape_(member_.shape(context)) {
    const auto release = release_of(context, member_);
    noise_ = release->noise_scale();
    centre_noise_ = release->centre_noise_scale();
  }

  Broadcast open() override { return current_; }

  void accept(const privacy::Upload& upload) override {
    const CentreSums centre = centre_of(upload.values());
    if (centre.sum.defined()) {
      centre_sum_ = centre_sum_.defined() ? centre_sum_ + centre.sum : centre.sum.clone();
      centre_count_ += centre.count;
      ++centre_members_;
      return;
    }
    sets_.push_back(prototypes_of(upload.values(), shape_, noise_.count));
    fresh_ = true;
  }

  Broadcast aggregate(const RoundContext& context) override {
    current_.round = context.round();
    if (centre_members_ > 0) place_centre();
    if (!fresh_) return current_;
    const at::Tensor centre = find_tensor(current_.values, kCentre);
    const GeneratorContext terms{shape_, noise_, noise_.count, seed_, context.round()};
    const auto& options = member_.options;
    current_.values = member_.framework->generate(options.shrink ? shrunk(sets_, terms) : sets_, terms);
    if (centre.defined()) current_.values.push_back({kCentre, centre});
    if (shape_.anchors > 1 && !options.release.once) current_.values.push_back({kAnchors, next_anchors()});
    if (!options.release.once) sets_.clear();
    fresh_ = false;
    return current_;
  }

  // One release stands for the whole run: what has come in is kept.
  NamedTensors state() const override {
    NamedTensors values;
    for (size_t i = 0; i < sets_.size(); ++i) append(values, fmt::format("set.{}", i), sets_[i]);
    return values;
  }

  void restore(const Broadcast& last, const NamedTensors& state) override {
    current_ = last;
    sets_.clear();
    for (size_t i = 0;; ++i) {
      PrototypeSet set = find_prototypes(state, fmt::format("set.{}", i));
      if (set.empty()) break;
      sets_.push_back(std::move(set));
    }
  }

 private:
  // As far as the noise leaves it to be trusted.
  void place_centre() {
    const double members = static_cast<double>(centre_members_);
    const double count = std::max(centre_count_, std::sqrt(members) * std::max(centre_noise_.count, 1.0));
    const at::Tensor mean = centre_sum_ / count;
    const double noise = static_cast<double>(shape_.width) * members * std::pow(centre_noise_.sum / count, 2);
    const double trust = std::max(0.0, 1 - noise / std::max(mean.square().sum().item<double>(), 1e-30));
    current_.values.push_back({kCentre, mean * trust});
    centre_sum_ = at::Tensor();
    centre_count_ = 0;
    centre_members_ = 0;
  }

  // The heaviest global prototypes of each class; public directions where there are too few.
  at::Tensor next_anchors() const {
    const PrototypeSet global = find_prototypes(current_.values, kGlobal);
    at::Tensor anchors = public_directions(shape_, seed_).unsqueeze(0).repeat({shape_.classes, 1, 1});
    if (global.empty()) return anchors;
    for (int64_t c = 0; c < shape_.classes; ++c) {
      const PrototypeSet own = global.where(global.classes.eq(c));
      const int64_t count = std::min(own.size(), shape_.anchors);
      if (count == 0) continue;
      anchors[c].narrow(0, 0, count).copy_(own.values.index_select(0, std::get<1>(own.weights.topk(count))));
    }
    return anchors;
  }

  PrototypeMember member_;
  uint64_t seed_;
  PrototypeShape shape_;
  NoiseScale noise_, centre_noise_;
  at::Tensor centre_sum_;
  double centre_count_ = 0;
  int64_t centre_members_ = 0;
  std::vector<PrototypeSet> sets_;
  bool fresh_ = false;
  Broadcast current_;
};

}  // namespace

std::unique_ptr<ServerMethod> make_prototype_server(const PublicContext& context, PrototypeMember member) {
  return std::make_unique<Server>(context, std::move(member));
}

BroadcastShape prototype_broadcast_shape(const PublicContext& context, const PrototypeMember& member,
                                         const Broadcast& broadcast) {
  const PrototypeShape shape = member.shape(context);
  BroadcastShape shapes = member.framework->generated(shape);
  const bool is_any = std::any_of(shapes.begin(), shapes.end(), [&](const privacy::TensorShape& tensor) {
    return find_tensor(broadcast.values, tensor.name).defined();
  });
  for (privacy::TensorShape& tensor : shapes) tensor.required = is_any;
  if (member.options.release.centre) shapes.push_back({.name = kCentre, .sizes = {shape.width}, .required = false});
  if (shape.anchors > 1) {
    shapes.push_back({.name = kAnchors, .sizes = {shape.classes, shape.anchors, shape.width}, .required = false});
  }
  return shapes;
}

}  // namespace sotto::methods

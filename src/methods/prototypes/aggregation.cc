#include "methods/prototypes/clustering.h"
#include "methods/prototypes/framework.h"

#include <ATen/ATen.h>

#include <cmath>

namespace sotto::methods {
namespace {

// What a client's sums were, before they were divided.
at::Tensor divisors(const PrototypeSet& set, double least) {
  return least > 0 ? set.weights.clamp_min(std::max(least, 1.0)) : set.weights;
}

struct ClassSums {
  at::Tensor sums;    // [C, d]
  at::Tensor counts;  // [C]
  at::Tensor held;    // bool [C]
};

ClassSums class_sums(const PrototypeSet& all, const at::Tensor& weights, const at::Tensor& counts, int64_t classes) {
  ClassSums result;
  result.sums = at::zeros({classes, all.values.size(1)}).index_add_(0, all.classes, all.values * weights.unsqueeze(1));
  result.counts = at::zeros({classes}).index_add_(0, all.classes, counts);
  result.held = at::bincount(all.classes, {}, classes).gt(0);
  return result;
}

PrototypeSet as_set(const at::Tensor& values, const at::Tensor& counts, const at::Tensor& held) {
  return PrototypeSet{values, at::arange(values.size(0), at::kLong), counts}.where(held);
}

// How far noise of variance `variance` per coordinate leaves each row to be trusted: [K].
at::Tensor trust(const at::Tensor& rows, const at::Tensor& variance) {
  const at::Tensor energy = rows.square().sum(1).clamp_min(1e-30);
  return (1 - variance * static_cast<double>(rows.size(1)) / energy).clamp_min(0);
}

}  // namespace

BroadcastShape shape_of_set(const std::string& name, const PrototypeShape& shape, int64_t length) {
  return {{.name = name + ".values", .sizes = {length, shape.width}},
          {.name = name + ".classes",
           .sizes = {length},
           .dtype = at::kLong,
           .least = 0,
           .most = static_cast<double>(shape.classes - 1)},
          {.name = name + ".weights", .sizes = {length}}};
}

BroadcastShape Framework::generated(const PrototypeShape& shape) const {
  return shape_of_set(kGlobal, shape);
}

PrototypeSet weighted_means(const std::vector<PrototypeSet>& clients, const GeneratorContext& context) {
  const PrototypeSet all = concatenate(clients);
  if (all.empty()) return {};
  const ClassSums sums = class_sums(all, divisors(all, context.least), all.weights, context.shape.classes);
  const double least = context.least > 0 ? context.least * std::sqrt(static_cast<double>(clients.size())) : 1e-12;
  return as_set(sums.sums / sums.counts.clamp_min(least).unsqueeze(1), sums.counts, sums.held);
}

PrototypeSet plain_means(const std::vector<PrototypeSet>& clients, const GeneratorContext& context) {
  const PrototypeSet all = concatenate(clients);
  if (all.empty()) return {};
  const at::Tensor ones = at::ones({all.size()});
  const ClassSums sums = class_sums(all, ones, ones, context.shape.classes);
  return as_set(sums.sums / sums.counts.clamp_min(1).unsqueeze(1), sums.counts, sums.held);
}

PrototypeSet finch_per_class(const std::vector<PrototypeSet>& clients, const GeneratorContext& context) {
  const PrototypeSet all = concatenate(clients);
  std::vector<PrototypeSet> centres;
  for (int64_t c = 0; c < context.shape.classes && !all.empty(); ++c) {
    const PrototypeSet own = all.where(all.classes.eq(c));
    if (own.empty()) continue;
    const at::Tensor labels = finch(own.values);
    const int64_t count = cluster_count(labels);
    centres.push_back({cluster_means(own.values, labels), at::full({count}, c, at::kLong),
                       at::zeros({count}).index_add_(0, labels, own.weights)});
  }
  return concatenate(centres);
}

std::vector<PrototypeSet> shrunk(const std::vector<PrototypeSet>& clients, const GeneratorContext& context) {
  if (context.noise.sum == 0) return clients;
  const int64_t classes = context.shape.classes;
  const PrototypeSet all = concatenate(clients);
  if (all.empty()) return clients;
  const double variance = context.noise.sum * context.noise.sum;
  const double members = static_cast<double>(all.size()) / static_cast<double>(classes);  // noisy sums per class
  const double least = context.least * std::sqrt(members);
  const ClassSums sums = class_sums(all, divisors(all, context.least), all.weights, classes);

  const double everything =
      std::max(sums.counts.sum().item<double>(), context.least * std::sqrt(members * static_cast<double>(classes)));
  const at::Tensor centre = sums.sums.sum(0, true) / everything;
  const at::Tensor counts = sums.counts.clamp_min(least);
  const at::Tensor offsets = sums.sums / counts.unsqueeze(1) - centre;
  const at::Tensor trusted = trust(offsets, members * variance / counts.square());
  const at::Tensor pooled = centre + offsets * trusted.unsqueeze(1);

  std::vector<PrototypeSet> result;
  for (const PrototypeSet& set : clients) {
    const at::Tensor home = pooled.index_select(0, set.classes);
    const at::Tensor own = set.values - home;
    PrototypeSet drawn = set;
    drawn.values = home + own * trust(own, variance / divisors(set, context.least).square()).unsqueeze(1);
    result.push_back(drawn.where(trusted.index_select(0, set.classes).gt(0)));
  }
  return result;
}

}  // namespace sotto::methods

#include "methods/prototypes/losses.h"

#include <ATen/ATen.h>

namespace sotto::methods {
namespace {

// Row i: which prototypes are of record i's class.
at::Tensor own_mask(const at::Tensor& labels, const at::Tensor& classes) {
  return labels.unsqueeze(1).eq(classes.unsqueeze(0));
}

at::Tensor mean_or_zero(const at::Tensor& per_record, const at::Tensor& applies) {
  const at::Tensor weight = applies.to(per_record.scalar_type());
  return at::where(applies, per_record, at::zeros({}, per_record.options())).sum() / weight.sum().clamp_min(1);
}

}  // namespace

at::Tensor distance_to_own(const at::Tensor& features, const at::Tensor& labels, const PrototypeSet& prototypes) {
  if (prototypes.empty()) return features.sum() * 0;
  const at::Tensor own = own_mask(labels, prototypes.classes);
  const at::Tensor targets = prototypes.values.index_select(0, own.to(at::kInt).argmax(1));
  return mean_or_zero((features - targets).square().mean(1), own.any(1));
}

at::Tensor cosine(const at::Tensor& features, const at::Tensor& prototypes) {
  const auto unit = [](const at::Tensor& rows) { return rows / rows.norm(2, 1, true).clamp_min(1e-8); };
  return unit(features).mm(unit(prototypes).t());
}

at::Tensor sparse_cosine(const at::Tensor& features, const at::Tensor& prototypes, double alpha) {
  const at::Tensor s = cosine(features, prototypes);
  // The power's slope is infinite at 0: below this it counts as this.
  constexpr double kLeast = 1e-3;
  return s.sign() * s.abs().clamp_min(kLeast).pow(alpha);
}

at::Tensor contrast(const at::Tensor& similarity, const at::Tensor& labels, const at::Tensor& classes,
                    double temperature) {
  const at::Tensor own = own_mask(labels, classes);
  const at::Tensor scaled = similarity / temperature;
  constexpr double kNever = -1e30;
  const at::Tensor positive = at::where(own, scaled, at::full({}, kNever, scaled.options())).logsumexp(1);
  return mean_or_zero(scaled.logsumexp(1) - positive, own.any(1));
}

at::Tensor correction(const at::Tensor& similarity, const at::Tensor& labels, const at::Tensor& classes) {
  const at::Tensor own = own_mask(labels, classes);
  const at::Tensor weight = own.to(similarity.scalar_type());
  return mean_or_zero(((1 - similarity) * weight).sum(1) / weight.sum(1).clamp_min(1), own.any(1));
}

at::Tensor distillation(const at::Tensor& teacher, const at::Tensor& student, double temperature) {
  const at::Tensor target = at::log_softmax(teacher.detach() / temperature, 1);
  const at::Tensor answer = at::log_softmax(student / temperature, 1);
  return (target.exp() * (target - answer)).sum(1).mean();
}

at::Tensor prototype_prior(const at::Tensor& features, const PrototypeSet& prototypes, int64_t classes) {
  if (prototypes.empty()) return at::zeros({features.size(0), classes}, features.options());
  const at::Tensor held = at::bincount(prototypes.classes, {}, classes).to(features.scalar_type()).unsqueeze(1);
  const at::Tensor sums =
      at::zeros({classes, features.size(1)}, features.options()).index_add_(0, prototypes.classes, prototypes.values);
  const at::Tensor own = sums / held.clamp_min(1);
  const at::Tensor centre = own.sum(0, true) / held.gt(0).sum();
  const at::Tensor means = at::where(held.gt(0), own, centre);
  const double spread = ((means - centre).square().sum() / held.gt(0).sum()).item<double>();
  if (!(spread > 0)) return at::zeros({features.size(0), classes}, features.options());
  return features.mm((means - centre).t()) / spread;
}

at::Tensor soft_clip(const at::Tensor& features, double radius, double gamma) {
  return features * (radius / (features.norm(2, 1, true) + gamma * radius));
}

}  // namespace sotto::methods

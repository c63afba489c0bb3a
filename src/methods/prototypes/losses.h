// The terms that prototype frameworks build their losses from. All are means over the records they apply to, and zero
// (with a graph) if they apply to none.
#pragma once

#include "methods/prototypes/prototype_set.h"

#include <ATen/core/Tensor.h>

namespace sotto::methods {

// Mean squared difference, per coordinate, between features and the prototype of their own class; `prototypes` has at
// most one of a class. Records whose class has none are left out.
at::Tensor distance_to_own(const at::Tensor& features, const at::Tensor& labels, const PrototypeSet& prototypes);

// How alike features and prototypes are, [B, K].
at::Tensor cosine(const at::Tensor& features, const at::Tensor& prototypes);
// sign(s)·|s|^α of cosines.
at::Tensor sparse_cosine(const at::Tensor& features, const at::Tensor& prototypes, double alpha);

// InfoNCE over a table of similarities [B, K]: -log of the share that prototypes of a record's own class have of
// Σ exp(s/τ). Records without a prototype of their class are left out.
at::Tensor contrast(const at::Tensor& similarity, const at::Tensor& labels, const at::Tensor& classes,
                    double temperature);

// Mean of 1 - similarity over the prototypes of a record's own class.
at::Tensor correction(const at::Tensor& similarity, const at::Tensor& labels, const at::Tensor& classes);

// KL(softmax(teacher/τ) ‖ softmax(student/τ)), mean over records; no gradient goes to the teacher.
at::Tensor distillation(const at::Tensor& teacher, const at::Tensor& student, double temperature);

// Class logits [B, C] by the direction of the prototypes: ⟨z, p_c - m⟩/v, m the mean of the prototypes (of a class,
// their mean), v their mean squared distance from it. Zero for classes that have none. Lengths of prototypes do not
// count: under noise they are those of the noise.
at::Tensor prototype_prior(const at::Tensor& features, const PrototypeSet& prototypes, int64_t classes);

// R·z/(‖z‖ + γR): near R for features of any length.
at::Tensor soft_clip(const at::Tensor& features, double radius, double gamma);

}  // namespace sotto::methods

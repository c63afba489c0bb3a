// How much a dimension of the features tells of the class.
#pragma once

#include <ATen/core/Tensor.h>

namespace sotto::methods {

// One-way ANOVA, dimension by dimension: the variance between classes over the variance within them,
//
//   S_j = [Σ_c n_c (μ_cj - μ_j)² / (C - 1)] / [Σ_c (n_c - 1) s²_cj / (n - C) + ζ],
//
// over the C classes that occur. Zeros if fewer than two do; within-class variance counts as zero if n = C.
// features [n, d], labels int64 [n] → double [d].
at::Tensor dimension_scores(const at::Tensor& features, const at::Tensor& labels, int64_t classes, double zeta = 1e-8);

// The same question asked of class means alone: the variance between them. prototypes [k, d], classes int64 [k].
at::Tensor between_class_variance(const at::Tensor& prototypes, const at::Tensor& classes, int64_t all_classes);

// Mutual information, in nats, between the class and each dimension cut into `bins` of equal counts. double [d].
at::Tensor mutual_information(const at::Tensor& features, const at::Tensor& labels, int64_t classes, int64_t bins = 8);

// Spearman's rank correlation; ties share their mean rank. NaN if either is constant.
double rank_correlation(const at::Tensor& a, const at::Tensor& b);

// The indices of the k largest, ascending.
at::Tensor largest(const at::Tensor& scores, int64_t k);

}  // namespace sotto::methods

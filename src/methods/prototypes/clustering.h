// Two ways to group vectors. Both answer with a cluster per row, int64 [n], numbered from 0 in order of appearance.
#pragma once

#include "base/random.h"

#include <ATen/core/Tensor.h>

namespace sotto::methods {

// FINCH (Sarfraz et al., CVPR 2019): every point is linked to its nearest by cosine; connected points are a cluster;
// their means are the points of the next level. The coarsest level of more than one cluster, or one cluster if there is
// none.
at::Tensor finch(const at::Tensor& points);

// Lloyd's algorithm from a k-means++ start; k is cut to the number of points. No cluster is empty.
at::Tensor k_means(const at::Tensor& points, int64_t k, RandomStream& stream, int iterations = 20);

// How many clusters these labels name.
int64_t cluster_count(const at::Tensor& labels);

// The mean of each cluster's rows, [clusters, d].
at::Tensor cluster_means(const at::Tensor& points, const at::Tensor& labels);

}  // namespace sotto::methods

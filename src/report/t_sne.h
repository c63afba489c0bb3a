// t-SNE: points of many dimensions as a picture of two (van der Maaten, Hinton, JMLR 2008).
#pragma once

#include <ATen/core/Tensor.h>

namespace sotto::report {

// points [n, d] → double [n, 2]. Exact, O(n²): for up to some thousand points. Starts from the two principal
// components, so that the answer depends on the points alone. Perplexity is cut to what so few points allow.
at::Tensor t_sne(const at::Tensor& points, double perplexity = 30, int iterations = 500);

}  // namespace sotto::report

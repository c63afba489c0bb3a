// ‖Σ_t g_t a_tᵀ‖² of every example without the sum: ⟨A Aᵀ, G Gᵀ⟩, in double precision and rounded up.
//
// Floats are exact as doubles, so only sums of products are rounded. With K = width of a and of g together, T² terms
// and u = 2⁻⁵³, every entry of either Gram matrix errs by at most 2Ku‖·‖‖·‖ of its two rows, and the inner product by
// at most 2(K + T² + 8)u·(Σ_t‖a_t‖‖g_t‖)² altogether; that much is added. It is some 1e-12 of the result unless
// positions cancel almost entirely, which is why this is not done in floats: there the same bound is no bound at all.
//
// What is added also bounds how much cancels: a norm is never below T·2⁻²⁶·Σ_t‖a_t‖‖g_t‖. So a weighted sum over
// examples and positions that is taken in doubles errs by a 2⁻¹⁵ of the bound at most, for passes of 64 examples
// (docs/proofs/noisy-descent.md, "Rounding").
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace sotto::privacy {

// A squared norm that was computed in doubles from sums of `terms` products, and is then at least the exact one; `spread`
// is what the norm would be if nothing cancelled.
double rounded_up(double square, double spread, int64_t terms);

// a [examples, T, in], g [examples, T, out] → squared norms, at least the exact ones.
std::vector<double> gram_squares(const at::Tensor& a, const at::Tensor& g);

// Where a convolution's output pixels look: square kernels, equal stride and zero padding.
struct ConvWindow {
  int64_t kernel, stride, padding;
};

// The same for a convolution's weights: x [examples, in, height, width], g [examples, out, out height, out width]. The
// Gram matrix of patches is the sum over kernel offsets of the shifted Gram matrix of pixels, so patches are never
// made.
std::vector<double> conv_gram_squares(const at::Tensor& x, const at::Tensor& g, const ConvWindow& window);

}  // namespace sotto::privacy

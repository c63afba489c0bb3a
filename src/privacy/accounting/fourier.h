// Real Fourier transforms with a bound on their rounding error. Thread-safe.
#pragma once

#include <complex>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace sotto::privacy {

class RealFourier {
 public:
  // Transforms of `size` points; good_size() gives sizes that are fast.
  explicit RealFourier(size_t size);
  ~RealFourier();
  RealFourier(const RealFourier&) = delete;
  RealFourier& operator=(const RealFourier&) = delete;

  static size_t good_size(double at_least);

  size_t size() const { return size_; }
  std::span<double> values() { return {values_, size_}; }
  std::span<std::complex<double>> spectrum() { return {spectrum_, size_ / 2 + 1}; }

  void forward();   // values → spectrum
  void backward();  // spectrum → values, divided by size; destroys the spectrum

  // ‖computed - exact‖ ≤ relative_error()·‖exact‖ in the 2-norm, and no coefficient of a forward transform is off by
  // more than relative_error()·Σ|values|. Either holds since an output is a sum of the inputs, each multiplied by one
  // twiddle factor per level and rounded (1 + √2)·4 units per level, over at most log₂(size) levels; doubled, since
  // levels of radix above 2 round a little more.
  double relative_error() const;

 private:
  struct Plans;
  size_t size_;
  double* values_;
  std::complex<double>* spectrum_;
  std::unique_ptr<Plans> plans_;
};

}  // namespace sotto::privacy

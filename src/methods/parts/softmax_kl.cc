#include "methods/parts/softmax_kl.h"

#include "base/error.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace sotto::methods {
namespace {

constexpr int64_t kBlock = 1024;

// Σ e^{x-m}, m the largest x so far.
struct Exponentials {
  double largest = -std::numeric_limits<double>::infinity();
  double sum = 0;

  // Makes room for a larger entry; returns what sums so far must be multiplied by.
  double raise_to(double entry) {
    if (!(entry > largest)) return 1;
    const double factor = std::exp(largest - entry);
    largest = entry;
    sum *= factor;
    return factor;
  }

  double log_sum() const { return largest + std::log(sum); }
};

// Nearby weights differ by less than this, and then e^x is a short sum: to 2e-15.
constexpr double kSmall = 0.01;

double exp_of_small(double x) {
  return 1 + x * (1 + x / 2 * (1 + x / 3 * (1 + x / 4 * (1 + x / 5))));
}

}  // namespace

double softmax_kl(const at::Tensor& a, const at::Tensor& b) {
  SOTTO_INVARIANT(a.numel() == b.numel() && a.scalar_type() == at::kFloat && b.scalar_type() == at::kFloat);
  const at::Tensor first = a.detach().contiguous().to(at::kCPU);
  const at::Tensor second = b.detach().contiguous().to(at::kCPU);
  const int64_t count = first.numel();
  if (count == 0) return 0;
  const float* x = first.data_ptr<float>();
  const float* y = second.data_ptr<float>();
  // With p = softmax(x) and q = softmax(y): KL = Σ p (x - y) - log Σ e^x + log Σ e^y.
  Exponentials p, q;
  double difference = 0;  // Σ e^{x-m} (x - y)
  bool finite = true;
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    const int64_t end = std::min(begin + kBlock, count);
    difference *= p.raise_to(*std::max_element(x + begin, x + end));
    q.raise_to(*std::max_element(y + begin, y + end));
    const double shift = p.largest - q.largest;
    const bool near = std::abs(shift) < 1;
    const double ratio = near ? std::exp(shift) : 0;
    double p_block = 0, q_block = 0, difference_block = 0;
    for (int64_t i = begin; i < end; ++i) {
      finite = finite && std::isfinite(x[i]) && std::isfinite(y[i]);
      const double apart = static_cast<double>(x[i]) - static_cast<double>(y[i]);
      const double weight = std::exp(static_cast<double>(x[i]) - p.largest);
      p_block += weight;
      q_block += near && std::abs(apart) < kSmall ? weight * ratio * exp_of_small(-apart)
                                                  : std::exp(static_cast<double>(y[i]) - q.largest);
      difference_block += weight * apart;
    }
    p.sum += p_block;
    q.sum += q_block;
    difference += difference_block;
  }
  if (!finite) return std::numeric_limits<double>::quiet_NaN();
  return std::max(0.0, difference / p.sum - p.log_sum() + q.log_sum());
}

}  // namespace sotto::methods

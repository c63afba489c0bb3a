#include "privacy/accounting/normal.h"

#include <boost/math/quadrature/gauss.hpp>

#include <cmath>
#include <numbers>

namespace sotto::privacy {
namespace {

constexpr long double kHalfLogTwoPi = 0.918938533204672741780329736405617639861L;
constexpr long double kSqrtTwo = std::numbers::sqrt2_v<long double>;

// With I_n(x) = ∫₀^∞ tⁿ/n! e^{-xt-t²/2} dt: I_n / I_{n-1} = 1/(x + (n+1)/(x + (n+2)/(x + …))), all terms positive, so
// nothing cancels. Converges fast for x ≥ 2.
long double ratio_of_moments(int n, long double x) {
  const int terms = static_cast<int>(40 + 1200 / (x * x));
  long double tail = x;
  for (int k = n + terms; k > n; --k) tail = x + static_cast<long double>(k) / tail;
  return 1 / tail;
}

// -R'(x) = 1 - x R(x) = I_1(x).
long double mills_slope(long double x) {
  const long double ratio = mills_ratio(x);
  return x < 2 ? 1 - x * ratio : ratio * ratio_of_moments(1, x);
}

}  // namespace

long double log_normal_density(long double x) {
  return -x * x / 2 - kHalfLogTwoPi;
}

long double mills_ratio(long double x) {
  // R = I_0 and I_{-1} = 1.
  if (x > 8) return ratio_of_moments(0, x);
  return std::exp(std::log(std::erfc(x / kSqrtTwo) / 2) - log_normal_density(x));
}

long double log_normal_tail(long double x) {
  if (x > 8) return std::log(mills_ratio(x)) + log_normal_density(x);
  if (x < -1) return std::log1p(-normal_tail(-x));
  return std::log(std::erfc(x / kSqrtTwo) / 2);
}

long double normal_tail(long double x) {
  return x > 8 ? std::exp(log_normal_tail(x)) : std::erfc(x / kSqrtTwo) / 2;
}

long double mills_ratio_drop(long double x, long double width) {
  const long double high = mills_ratio(x);
  const long double low = mills_ratio(x + width);
  if (low < high / 2) return high - low;
  // The integrand is smooth on the scale max(1, x) and the interval is shorter than that.
  return boost::math::quadrature::gauss<long double, 20>::integrate([](long double t) { return mills_slope(t); }, x,
                                                                    x + width);
}

}  // namespace sotto::privacy

#include "privacy/noise/discrete.h"

#include "base/error.h"
#include "privacy/noise/uniform.h"

#include <boost/multiprecision/cpp_int.hpp>

#include <cmath>

namespace sotto::privacy {
namespace {

using Integer = boost::multiprecision::cpp_int;

bool certain() {
  return true;
}

// Compares a uniform with the ratio's expansion, 64 binary digits at a time; numerator < denominator.
bool bernoulli(Integer numerator, const Integer& denominator, NoiseSource& source) {
  while (numerator != 0) {
    Integer digits;
    divide_qr(Integer(numerator << 64), denominator, digits, numerator);
    const Integer drawn = source.bits();
    if (drawn != digits) return drawn < digits;
  }
  return false;
}

bool bernoulli_exp_minus_ratio(Integer numerator, const Integer& denominator, NoiseSource& source) {
  while (numerator >= denominator) {
    if (!bernoulli_exp_minus(certain, source)) return false;
    numerator -= denominator;
  }
  return bernoulli_exp_minus([&] { return bernoulli(numerator, denominator, source); }, source);
}

// σ² = numerator/denominator exactly.
class DiscreteGaussian {
 public:
  explicit DiscreteGaussian(double sigma) {
    if (!(sigma >= 1e-3 && sigma <= 1e9)) {
      fail_user("Discrete Gaussian noise needs a standard deviation between 1e-3 and 1e9, not {}", sigma);
    }
    int exponent = 0;
    const auto mantissa = static_cast<uint64_t>(std::ldexp(std::frexp(sigma, &exponent), 53));
    exponent -= 53;  // negative, since sigma < 2^53
    numerator_ = Integer(mantissa) * mantissa;
    denominator_ = Integer(1) << (-2 * exponent);
    scale_ = static_cast<uint64_t>(std::floor(sigma)) + 1;
    gamma_denominator_ = 2 * numerator_ * denominator_ * scale_ * scale_;
  }

  // Accepts a two-sided geometric Y of scale t with probability e^-γ, γ = (|Y| - σ²/t)²/2σ².
  int64_t draw(NoiseSource& source) const {
    while (true) {
      const int64_t proposal = discrete_laplace(scale_, source);
      const Integer distance = Integer(std::abs(proposal)) * scale_ * denominator_ - numerator_;
      if (bernoulli_exp_minus_ratio(distance * distance, gamma_denominator_, source)) return proposal;
    }
  }

 private:
  Integer numerator_, denominator_, gamma_denominator_;
  uint64_t scale_;
};

}  // namespace

uint64_t geometric(uint64_t scale, NoiseSource& source) {
  SOTTO_INVARIANT(scale > 0);
  uint64_t fraction = uniform_below(scale, source);
  while (!bernoulli_exp_minus([&] { return bernoulli(fraction, scale, source); }, source)) {
    fraction = uniform_below(scale, source);
  }
  uint64_t whole = 0;
  while (bernoulli_exp_minus(certain, source)) ++whole;
  return whole * scale + fraction;
}

int64_t discrete_laplace(uint64_t scale, NoiseSource& source) {
  while (true) {
    const auto magnitude = static_cast<int64_t>(geometric(scale, source));
    const bool negative = (source.bits() & 1) == 1;
    if (negative && magnitude == 0) continue;  // zero would count twice
    return negative ? -magnitude : magnitude;
  }
}

int64_t discrete_gaussian(double sigma, NoiseSource& source) {
  return DiscreteGaussian(sigma).draw(source);
}

void discrete_gaussian(std::span<int64_t> out, double sigma, NoiseSource& source) {
  const DiscreteGaussian law(sigma);
  for (int64_t& value : out) value = law.draw(source);
}

}  // namespace sotto::privacy

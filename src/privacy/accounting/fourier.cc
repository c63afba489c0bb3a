#include "privacy/accounting/fourier.h"

#include <fftw3.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>

namespace sotto::privacy {
namespace {

// FFTW executes plans concurrently but makes them one at a time.
std::mutex& planner() {
  static std::mutex mutex;
  return mutex;
}

}  // namespace

struct RealFourier::Plans {
  fftw_plan forward;
  fftw_plan backward;
};

RealFourier::RealFourier(size_t size)
    : size_(size),
      values_(fftw_alloc_real(size)),
      spectrum_(reinterpret_cast<std::complex<double>*>(fftw_alloc_complex(size / 2 + 1))),
      plans_(std::make_unique<Plans>()) {
  const std::lock_guard lock(planner());
  auto* const spectrum = reinterpret_cast<fftw_complex*>(spectrum_);
  const int n = static_cast<int>(size);
  plans_->forward = fftw_plan_dft_r2c_1d(n, values_, spectrum, FFTW_ESTIMATE);
  plans_->backward = fftw_plan_dft_c2r_1d(n, spectrum, values_, FFTW_ESTIMATE);
  std::fill_n(values_, size, 0.0);
}

RealFourier::~RealFourier() {
  const std::lock_guard lock(planner());
  fftw_destroy_plan(plans_->forward);
  fftw_destroy_plan(plans_->backward);
  fftw_free(values_);
  fftw_free(spectrum_);
}

size_t RealFourier::good_size(double at_least) {
  size_t power = 1024;
  while (static_cast<double>(power) < at_least) power *= 2;
  return 0.75 * static_cast<double>(power) >= at_least ? power / 4 * 3 : power;
}

void RealFourier::forward() {
  fftw_execute(plans_->forward);
}

void RealFourier::backward() {
  fftw_execute(plans_->backward);
  const double scale = 1 / static_cast<double>(size_);
  for (double& value : values()) value *= scale;
}

double RealFourier::relative_error() const {
  return 24 * std::numeric_limits<double>::epsilon() / 2 * std::log2(static_cast<double>(size_));
}

}  // namespace sotto::privacy

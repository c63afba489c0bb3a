#include "privacy/accounting/allocation.h"

#include "privacy/accounting/spread_law.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <deque>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <tuple>

namespace sotto::privacy {
namespace {

constexpr double kUnit = std::numeric_limits<double>::epsilon();
// Where losses reach further than this, probabilities under Q underflow.
constexpr double kMostLoss = 500;
// Products of rare events should not underflow: that takes time, and costs more than it saves.
constexpr double kLeastTail = 1e-120;
// Products that one epoch may take, which bounds the points of its laws.
constexpr double kMostWork = 6e8;

int levels(int64_t batches) {
  return static_cast<int>(std::bit_width(static_cast<uint64_t>(batches))) - 1;
}

int64_t ratio(double coarse, double fine) {
  return std::llround(coarse / fine);
}

// The law of (X_1 + … + X_t)/t: sums of 1, 2, 4, … terms, and of those that the binary digits of t name.
//
// Sums of m terms are spread t/m times, and each time a spread of width h adds h²/6 of the square of their mean m/t to
// the variance: a share m/t of what a spread of the result would. So their grid is coarser by √(t/m), to a factor of 2.
class Epoch {
 public:
  Epoch(double mu, int64_t batches, double spacing, double tail)
      : mu_(mu), batches_(batches), spacing_(spacing), sums_(2 * levels(batches) + 1) {
    share_ = tail / static_cast<double>(sums_ + 1);
    most_points_ = std::max(1024.0, std::sqrt(2 * kMostWork / static_cast<double>(sums_)));
  }

  SpreadLaw law() const {
    SpreadLaw power = leaf();
    std::optional<SpreadLaw> whole;
    int64_t in_whole = 0;
    for (int bit = 0;; ++bit) {
      const int64_t size = int64_t{1} << bit;
      if ((batches_ & size) != 0) {
        whole = whole ? added(std::move(*whole), power, in_whole + size) : power;
        in_whole += size;
      }
      if (in_whole == batches_) break;
      power = limited(sum_of_two(power, refinement(power.spacing, 2 * size)), 2 * size);
    }
    const int64_t factor = ratio(whole->spacing, spacing_);
    return refined(std::move(*whole), factor);
  }

 private:
  double spacing_of(int64_t size) const { return std::ldexp(spacing_, levels(batches_ / size) / 2); }

  // How much finer than the terms' a sum's grid should be. More than a factor of 4 is for terms whose points were limited.
  int64_t refinement(double spacing, int64_t size) const {
    return std::clamp<int64_t>(ratio(spacing, std::min(spacing, spacing_of(size))), 1, 4);
  }

  SpreadLaw leaf() const {
    double spacing = spacing_of(1);
    const double log_divisor = std::log(static_cast<double>(batches_));
    const double width = 2 * mu_ * (mu_ + 6);  // at least, which will do: `limited` does the rest
    while (width / spacing > 2 * most_points_) spacing *= 2;
    return limited(spread_lognormal(mu_, log_divisor, spacing, share_), 1);
  }

  SpreadLaw added(SpreadLaw a, const SpreadLaw& b, int64_t size) const {
    const double finer = std::min(a.spacing, b.spacing);
    const int64_t factor = ratio(a.spacing, finer);
    a = refined(std::move(a), factor);
    return limited(sum(a, refined(b, ratio(b.spacing, finer)), refinement(finer, size)), size);
  }

  SpreadLaw limited(SpreadLaw law, int64_t size) const {
    trim(law, share_ * static_cast<double>(size) / static_cast<double>(batches_), share_);
    while (static_cast<double>(law.mass.size()) > most_points_) coarsen(law);
    return law;
  }

  double mu_;
  int64_t batches_;
  double spacing_;
  int sums_;
  double share_;
  double most_points_;
};

LossGrid compute(const Step& step, double spacing, double tail_mass) {
  const double mu = 1 / step.noise_multiplier;
  const auto batches = static_cast<double>(step.batches);
  const LossRange reach = gaussian_range(Step::gaussian(step.noise_multiplier), tail_mass);
  if (reach.high > kMostLoss) {
    Step plain = step;
    plain.batches = 1;
    return discretise(plain, spacing, tail_mass);
  }
  const SpreadLaw law = Epoch(mu, step.batches, spacing, tail_mass).law();
  LossGrid grid;
  grid.spacing = spacing;
  grid.first = law.first;
  grid.mass = law.mass;
  const double farthest =
      spacing *
      static_cast<double>(std::max(std::abs(law.first), std::abs(law.first + static_cast<int64_t>(law.mass.size()))));
  grid.position_error = law.position_error + 2 * kUnit * batches;  // probabilities of batches may be off by kUnit
  const double up = 1 + law.relative_error + 2 * grid.position_error + 8 * kUnit * (1 + farthest);
  for (size_t i = 0; i < grid.mass.size(); ++i) {
    grid.mass[i] *= std::exp(static_cast<double>(law.first + static_cast<int64_t>(i)) * spacing) * up;
  }
  grid.p_at_infinity = law.at_infinity * up;
  grid.q_at_infinity = law.at_zero * up;
  return grid;
}

class Known {
 public:
  template <typename F>
  std::shared_ptr<const LossGrid> get(const Step& step, double spacing, double tail_mass, const F& make) {
    const Key key(step.noise_multiplier, step.batches, spacing, tail_mass);
    {
      const std::lock_guard lock(mutex_);
      for (const auto& [known, grid] : grids_) {
        if (known == key) return grid;
      }
    }
    auto grid = std::make_shared<const LossGrid>(make());
    if (grid->mass.size() > kMostPoints) return grid;
    const std::lock_guard lock(mutex_);
    grids_.emplace_back(key, grid);
    if (grids_.size() > kMost) grids_.pop_front();
    return grid;
  }

 private:
  using Key = std::tuple<double, int64_t, double, double>;
  static constexpr size_t kMost = 16;
  static constexpr size_t kMostPoints = 1 << 18;
  std::mutex mutex_;
  std::deque<std::pair<Key, std::shared_ptr<const LossGrid>>> grids_;
};

}  // namespace

bool allocation_matters(const Step& step) {
  return step.noise_multiplier >= 0.2;
}

LossGrid allocated_grid(const Step& step, double spacing, double tail_mass) {
  static Known known;
  const double tail = std::max(tail_mass, kLeastTail);
  return *known.get(step, spacing, tail, [&] { return compute(step, spacing, tail); });
}

double rough_allocated_spacing(const Step& step) {
  const double mu = 1 / step.noise_multiplier;
  const double deviation = std::sqrt(std::expm1(std::min(mu * mu, 100.0)) / static_cast<double>(step.batches));
  return 0.03 * std::min(deviation, std::max(1.0, mu / 4));
}

double allocated_spreads(const Step& step) {
  return levels(step.batches) + std::popcount(static_cast<uint64_t>(step.batches));
}

}  // namespace sotto::privacy

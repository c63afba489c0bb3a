#include "audit/two_worlds.h"

#include "base/error.h"
#include "base/parallel.h"
#include "base/progress.h"
#include "privacy/accounting/gaussian.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>

namespace sotto::audit {
namespace {

constexpr World kWorlds[] = {World::kWithout, World::kWith};
constexpr int64_t kBatch = 64;  // trials a thread makes in one go, at most
// Pilots that differ by less than this, relative to the other world's, have the same noise up to rounding.
constexpr double kSameSpread = 1e-3;
// Spreads below this share of the tensor's size are rounding.
constexpr double kNoNoise = 1e-7;
// Directions in which the noise spreads less than this, relative to its widest, are not used.
constexpr double kNarrow = 1e-3;

size_t index(World world) {
  return world == World::kWith ? 1 : 0;
}

bool same_form(const NamedTensors& a, const NamedTensors& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const NamedTensor& x, const NamedTensor& y) {
    return x.name == y.name && x.value.sizes() == y.value.sizes();
  });
}

at::Tensor numbers(const at::Tensor& tensor) {
  return tensor.detach().to(at::kDouble).reshape({-1});
}

// Σ term(i, value_i), without a tensor in between where the values are plain floats.
template <typename Term>
double sum_over(const at::Tensor& tensor, const Term& term) {
  const bool floats = tensor.scalar_type() == at::kFloat && tensor.is_contiguous();
  const at::Tensor doubles = floats ? at::Tensor() : numbers(tensor).contiguous();
  double sum = 0;
  for (int64_t i = 0; i < tensor.numel(); ++i) {
    sum += term(i, floats ? static_cast<double>(tensor.data_ptr<float>()[i]) : doubles.data_ptr<double>()[i]);
  }
  return sum;
}

// What the pilot says of one tensor.
struct Known {
  std::string name;
  at::Tensor mean[2];
  double spread[2] = {0, 0};  // of one coordinate
  at::Tensor weight;          // of the projection
  at::Tensor confined = {};   // the same where the noise lies in few directions; undefined where it does not

  bool noisy() const { return spread[0] > 0 && spread[1] > 0; }
  bool differs() const { return !mean[0].equal(mean[1]); }
};

// What was seen in each world, the same seeds in both.
using SeenInBoth = std::array<std::vector<NamedTensors>, 2>;

class Pilot {
 public:
  explicit Pilot(const SeenInBoth& seen) {
    form_ = seen[1][0];
    forms_differ_ = !same_form(seen[0][0], seen[1][0]);
    if (forms_differ_) return;
    for (size_t t = 0; t < form_.size(); ++t) tensors_.push_back(know(seen, t));
  }

  double separation() const {
    if (forms_differ_) return std::numeric_limits<double>::infinity();
    double square = 0;
    for (const Known& tensor : tensors_) {
      if (!tensor.differs() && scale_term(tensor) == 0) continue;
      if (!tensor.noisy()) return std::numeric_limits<double>::infinity();
      square += ((tensor.mean[1] - tensor.mean[0]) / spread(tensor)).square().sum().item<double>() + scale_term(tensor);
    }
    return std::sqrt(square);
  }

  using Statistic = std::function<double(const NamedTensors&)>;
  struct Named {
    std::string name;
    Statistic of;
  };

  std::vector<Named> statistics() const {
    if (forms_differ_) {
      return {{"equality", [this](const NamedTensors& seen) { return same_form(seen, form_) ? 1.0 : 0.0; }}};
    }
    std::vector<Named> all;
    const auto any = [&](auto holds) { return std::any_of(tensors_.begin(), tensors_.end(), holds); };
    if (any([](const Known& t) { return t.noisy() && t.differs(); })) {
      all.push_back({"projection", [this](const NamedTensors& seen) { return projection(seen); }});
    }
    if (any([](const Known& t) { return t.confined.defined(); })) {
      all.push_back({"confined", [this](const NamedTensors& seen) { return projection(seen, true); }});
    }
    if (any([](const Known& t) { return t.noisy() && scale_term(t) > 0; })) {
      all.push_back({"likelihood", [this](const NamedTensors& seen) { return likelihood(seen); }});
    }
    if (any([](const Known& t) { return !t.noisy() && t.differs(); })) {
      all.push_back({"equality", [this](const NamedTensors& seen) { return equality(seen); }});
    }
    return all;
  }

 private:
  static double spread(const Known& tensor) { return std::sqrt(tensor.spread[0] * tensor.spread[1]); }

  // What a difference of spreads adds to the squared separation.
  static double scale_term(const Known& tensor) {
    if (!tensor.noisy()) return 0;
    const double ratio = std::log(tensor.spread[1] / tensor.spread[0]);
    return std::abs(ratio) > kSameSpread ? 2 * ratio * ratio * static_cast<double>(tensor.mean[0].numel()) : 0;
  }

  static Known know(const SeenInBoth& seen, size_t tensor) {
    Known known;
    known.name = seen[0][0][tensor].name;
    for (const World world : kWorlds) {
      std::vector<at::Tensor> rows;
      for (const NamedTensors& trial : seen[index(world)]) rows.push_back(numbers(trial[tensor].value));
      const at::Tensor all = at::stack(rows);
      known.mean[index(world)] = all.mean(0);
      const double spread = all.numel() == 0 ? 0 : std::sqrt(all.var(0).mean().item<double>());
      const double size = all.numel() == 0 ? 0 : all.abs().max().item<double>();
      known.spread[index(world)] = spread > kNoNoise * size ? spread : 0;
      if (known.spread[index(world)] == 0) known.mean[index(world)] = rows[0];
    }
    if (!known.noisy()) return known;
    known.weight = ((known.mean[1] - known.mean[0]) / (known.spread[0] * known.spread[1])).contiguous();
    std::vector<at::Tensor> noise;
    for (const NamedTensors& trial : seen[0]) noise.push_back(numbers(trial[tensor].value) - known.mean[0]);
    known.confined = confined_weight(at::stack(noise), known.mean[1] - known.mean[0]);
    return known;
  }

  // Σ⁺ times the difference, of noise [pilots, coordinates] that fills neither the space nor half of what so many
  // pilots can show: Σ is then known well enough to be inverted. Undefined otherwise.
  static at::Tensor confined_weight(const at::Tensor& noise, const at::Tensor& difference) {
    const auto pilots = noise.size(0);
    const auto [values, vectors] = at::linalg_eigh(noise.matmul(noise.t()));
    const double widest = values.max().item<double>();
    const at::Tensor wide = (values > kNarrow * kNarrow * widest).nonzero().squeeze(1);
    if (widest <= 0 || 2 * wide.size(0) > pilots || wide.size(0) >= noise.size(1)) return {};
    const at::Tensor squares = values.index_select(0, wide);
    // Rows of length one that span the noise.
    const at::Tensor directions = vectors.index_select(1, wide).t().matmul(noise) / squares.sqrt().unsqueeze(1);
    const at::Tensor along = directions.matmul(difference) * static_cast<double>(pilots - 1) / squares;
    return directions.t().matmul(along).contiguous();
  }

  double projection(const NamedTensors& seen, bool confined = false) const {
    if (!same_form(seen, form_)) return 0;
    double sum = 0;
    for (size_t t = 0; t < tensors_.size(); ++t) {
      const Known& known = tensors_[t];
      if (!known.noisy()) continue;
      const double* weight = (confined && known.confined.defined() ? known.confined : known.weight).data_ptr<double>();
      sum += sum_over(seen[t].value, [&](int64_t i, double value) { return weight[i] * value; });
    }
    return sum;
  }

  double likelihood(const NamedTensors& seen) const {
    if (!same_form(seen, form_)) return 0;
    double sum = 0;
    for (size_t t = 0; t < tensors_.size(); ++t) {
      const Known& known = tensors_[t];
      if (known.noisy()) sum += nearer(known, seen[t].value, known.spread[0], known.spread[1]);
    }
    return sum;
  }

  // Of what has no noise; rounding aside, one of the two distances is zero.
  double equality(const NamedTensors& seen) const {
    if (!same_form(seen, form_)) return 0;
    double sum = 0;
    for (size_t t = 0; t < tensors_.size(); ++t) {
      if (!tensors_[t].noisy() && tensors_[t].differs()) sum += nearer(tensors_[t], seen[t].value, 1, 1);
    }
    return sum;
  }

  // How much nearer a value is to the mean with than to that without, in squared units of these.
  static double nearer(const Known& known, const at::Tensor& value, double unit_without, double unit_with) {
    const double* without = known.mean[0].data_ptr<double>();
    const double* with = known.mean[1].data_ptr<double>();
    return sum_over(value, [&](int64_t i, double x) {
      const double a = (x - without[i]) / unit_without, b = (x - with[i]) / unit_with;
      return (a * a - b * b) / 2;
    });
  }

  NamedTensors form_;
  bool forms_differ_ = false;
  std::vector<Known> tensors_;
};

}  // namespace

double separation(const Draw& draw, int64_t pilots, uint64_t seed) {
  SeenInBoth seen;
  for (int64_t i = 0; i < pilots; ++i) {
    for (const World world : kWorlds) seen[index(world)].push_back(clone(draw(world, seed + static_cast<uint64_t>(i))));
  }
  return Pilot(seen).separation();
}

Finding tell_apart(const MakeDraw& make_draw, const TrialOptions& options) {
  SOTTO_INVARIANT(options.trials >= 4 && options.pilots >= 2 && options.threads >= 1);
  std::vector<Draw> draws(static_cast<size_t>(options.threads));
  const auto draw_of = [&](int worker) -> Draw& {
    Draw& draw = draws[static_cast<size_t>(worker)];
    if (!draw) draw = make_draw();
    return draw;
  };
  SeenInBoth seen_first;
  for (auto& seen : seen_first) seen.resize(static_cast<size_t>(options.pilots));
  {
    Progress progress("pilots", options.pilots);
    parallel_in_order(
        options.pilots, options.threads,
        [&](int64_t i, int worker) {
          for (const World world : kWorlds) {
            seen_first[index(world)][static_cast<size_t>(i)] =
                clone(draw_of(worker)(world, options.seed + static_cast<uint64_t>(i)));
          }
        },
        [&](int64_t) { progress.advance(); });
  }
  const Pilot pilot(seen_first);
  const auto statistics = pilot.statistics();
  Finding best{.bounds = {.trials = 2 * options.trials}, .statistic = "none"};
  if (statistics.empty()) return best;

  std::vector<Sample> samples(statistics.size());
  for (Sample& sample : samples) {
    for (auto* values : {&sample.without, &sample.with}) values->resize(static_cast<size_t>(options.trials));
  }
  // Of expensive trials there are few; both threads get some, and progress is seen.
  const int64_t batch_size = std::clamp<int64_t>(options.trials / 100, 1, kBatch);
  const int64_t batches = (options.trials + batch_size - 1) / batch_size;
  const uint64_t after_pilots = options.seed + static_cast<uint64_t>(options.pilots);
  Progress progress("trials", batches);
  parallel_in_order(
      batches, options.threads,
      [&](int64_t batch, int worker) {
        Draw& draw = draw_of(worker);
        for (int64_t i = batch * batch_size; i < std::min(options.trials, (batch + 1) * batch_size); ++i) {
          for (const World world : kWorlds) {
            const NamedTensors seen = draw(world, after_pilots + 2 * static_cast<uint64_t>(i) + index(world));
            for (size_t s = 0; s < samples.size(); ++s) {
              (world == World::kWith ? samples[s].with : samples[s].without)[static_cast<size_t>(i)] =
                  statistics[s].of(seen);
            }
          }
        }
      },
      [&](int64_t) { progress.advance(); });

  const double share = options.alpha / static_cast<double>(statistics.size());
  std::optional<double> strongest;
  for (size_t s = 0; s < samples.size(); ++s) {
    const Bounds bounds = lower_bounds(samples[s], options.delta, share);
    const double strength = std::max(bounds.epsilon, bounds.epsilon_by_curve(options.delta));
    const double epsilon = std::max(best.bounds.epsilon, bounds.epsilon), mu = std::max(best.bounds.mu, bounds.mu);
    const ErrorRates limits = bounds.mu >= best.bounds.mu ? bounds.limits : best.bounds.limits;
    if (!strongest || strength > *strongest) {
      strongest = strength;
      best = {bounds, statistics[s].name};
    }
    best.bounds.epsilon = epsilon;
    best.bounds.mu = mu;
    best.bounds.limits = limits;
  }
  return best;
}

}  // namespace sotto::audit

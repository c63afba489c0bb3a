#include "privacy/noise/gaussian_table.h"

#include "base/error.h"

#include <cmath>
#include <numbers>
#include <vector>

namespace sotto::privacy {
namespace {

// Covers the errors of exp() and of the midpoint rule for every s ≥ 2^20, both below 2^-36 relative.
constexpr double kMargin = 0x1p-30;
constexpr uint64_t kTotalWeight = uint64_t{1} << 62;

double scaled_density(double x) {
  return std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi) / 32;
}

double edge(int interval) {
  return static_cast<double>(interval) / GaussianTable::kIntervalsPerScale;
}

// The most that p - core reaches in an interval.
double height(const GaussianTable::Interval& interval, int number) {
  return scaled_density(edge(number)) * (1 + kMargin) - interval.core;
}

// Weights just large enough for the heights; what is then missing to 2^62 goes to the first.
void choose_weights(GaussianTable& table) {
  double sum = 0;
  for (int i = 0; i < GaussianTable::kIntervals; ++i) sum += height(table.interval[i], i);
  table.envelope = std::ceil(sum * (1 + 0x1p-20) * 0x1p30) * 0x1p-30;
  uint64_t left = kTotalWeight;
  for (int i = 0; i < GaussianTable::kIntervals; ++i) {
    const double share = height(table.interval[i], i) / table.envelope;
    table.weight[i] = static_cast<uint64_t>(std::ceil(share * 0x1p62 * (1 + kMargin)));
    SOTTO_INVARIANT(table.weight[i] >= 1 && table.weight[i] <= left);
    left -= table.weight[i];
  }
  table.weight[0] += left;
  for (int i = 0; i < GaussianTable::kIntervals; ++i) {
    table.interval[i].proposal = table.envelope * static_cast<double>(table.weight[i]) * 0x1p-62;
  }
}

// Walker's alias columns, in integers: every column holds exactly 2^52.
void build_columns(GaussianTable& table) {
  constexpr uint64_t kCapacity = uint64_t{1} << GaussianTable::kColumnBits;
  std::array<uint64_t, GaussianTable::kIntervals> weight = table.weight;
  std::vector<uint16_t> small, large;
  for (uint16_t i = 0; i < GaussianTable::kIntervals; ++i) (weight[i] < kCapacity ? small : large).push_back(i);
  while (!small.empty()) {
    SOTTO_INVARIANT(!large.empty());
    const uint16_t low = small.back(), high = large.back();
    small.pop_back();
    table.column[low] = {weight[low], high};
    weight[high] -= kCapacity - weight[low];
    if (weight[high] < kCapacity) {
      large.pop_back();
      small.push_back(high);
    }
  }
  for (const uint16_t full : large) {
    SOTTO_INVARIANT(weight[full] == kCapacity);
    table.column[full] = {kCapacity, full};
  }
}

}  // namespace

GaussianTable::GaussianTable() {
  box.fill(kRest);
  size_t boxes = 0;
  for (int i = 0; i < kIntervals; ++i) {
    const double room = std::ldexp(scaled_density(edge(i + 1)) * (1 - kMargin), kBoxBits);
    const auto stacked = i < kRest ? static_cast<size_t>(std::floor(room)) : 0;
    SOTTO_INVARIANT(boxes + stacked <= box.size());
    for (size_t k = 0; k < stacked; ++k) box[boxes++] = static_cast<uint8_t>(i);
    interval[i].centre = edge(i) + 0.5 / kIntervalsPerScale;
    interval[i].centre_density = scaled_density(interval[i].centre);
    interval[i].core = std::ldexp(static_cast<double>(stacked), -kBoxBits);
  }
  choose_weights(*this);
  build_columns(*this);
}

const GaussianTable& GaussianTable::get() {
  static const GaussianTable table;
  return table;
}

}  // namespace sotto::privacy

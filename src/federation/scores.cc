#include "federation/scores.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace sotto::federation {

double accuracy(const Predictions& predictions) {
  if (predictions.truth.numel() == 0) return kUndefined;
  return predictions.predicted.eq(predictions.truth).to(at::kDouble).mean().item<double>();
}

double balanced_accuracy(const Predictions& predictions) {
  const int64_t n = predictions.truth.numel();
  if (n == 0) return kUndefined;
  const auto truth = predictions.truth.contiguous();
  const auto predicted = predictions.predicted.contiguous();
  std::map<int64_t, std::pair<int64_t, int64_t>> right_of_total;
  for (int64_t i = 0; i < n; ++i) {
    auto& [right, total] = right_of_total[truth.data_ptr<int64_t>()[i]];
    right += truth.data_ptr<int64_t>()[i] == predicted.data_ptr<int64_t>()[i] ? 1 : 0;
    ++total;
  }
  double sum = 0.0;
  for (const auto& [label, counts] : right_of_total) {
    sum += static_cast<double>(counts.first) / static_cast<double>(counts.second);
  }
  return sum / static_cast<double>(right_of_total.size());
}

double auroc(const Predictions& predictions) {
  if (!predictions.score.defined()) return kUndefined;
  const auto score = predictions.score.to(at::kDouble).contiguous();
  if (score.isnan().any().item<bool>()) return kUndefined;  // such scores have no order
  const auto truth = predictions.truth.contiguous();
  const auto n = static_cast<size_t>(truth.numel());
  std::vector<size_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  const double* s = score.data_ptr<double>();
  std::sort(order.begin(), order.end(), [s](size_t a, size_t b) { return s[a] < s[b]; });
  double positives = 0;
  double rank_sum = 0;
  for (size_t begin = 0; begin < n;) {
    size_t end = begin;
    double tied_positives = 0;
    while (end < n && s[order[end]] == s[order[begin]]) tied_positives += truth.data_ptr<int64_t>()[order[end++]] == 1;
    rank_sum += tied_positives * (static_cast<double>(begin + end + 1) / 2);
    positives += tied_positives;
    begin = end;
  }
  const double negatives = static_cast<double>(n) - positives;
  if (positives == 0 || negatives == 0) return kUndefined;
  return (rank_sum - positives * (positives + 1) / 2) / (positives * negatives);
}

Spread spread(const std::vector<double>& values) {
  std::vector<double> finite;
  std::copy_if(values.begin(), values.end(), std::back_inserter(finite), [](double v) { return std::isfinite(v); });
  if (finite.empty()) return {};
  const auto n = static_cast<double>(finite.size());
  const double mean = std::accumulate(finite.begin(), finite.end(), 0.0) / n;
  double squares = 0.0;
  for (const double value : finite) squares += (value - mean) * (value - mean);
  return {mean, std::sqrt(squares / n), *std::min_element(finite.begin(), finite.end())};
}

}  // namespace sotto::federation

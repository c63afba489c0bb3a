// How far a sample is from a law: p-values, small if it is not that law.
//
// Tests draw from replayable sources, so that a p-value is the same in every run. Good samplers must stay above
// kPlausible and broken ones fall below kRefuted.
#pragma once

#include <boost/math/distributions/chi_squared.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace sotto::privacy {

inline constexpr double kPlausible = 1e-4;
inline constexpr double kRefuted = 1e-9;

inline double normal_cdf(double x) {
  return 0.5 * std::erfc(-x / std::sqrt(2.0));
}

inline double p_of_z(double z) {
  return std::erfc(std::abs(z) / std::sqrt(2.0));
}

inline double p_of_count(double observed, double draws, double probability) {
  return p_of_z((observed - draws * probability) / std::sqrt(draws * probability * (1 - probability)));
}

inline double p_of_chi_square(double statistic, double degrees) {
  return cdf(complement(boost::math::chi_squared(degrees), statistic));
}

// Cells with fewer than ten expected are merged into their neighbours.
inline double chi_square_p(std::span<const double> observed, std::span<const double> expected) {
  double statistic = 0, seen = 0, due = 0;
  int cells = 0;
  for (size_t i = 0; i < observed.size(); ++i) {
    seen += observed[i];
    due += expected[i];
    if (due < 10 && i + 1 < observed.size()) continue;
    if (due <= 0) continue;
    statistic += (seen - due) * (seen - due) / due;
    seen = due = 0;
    ++cells;
  }
  return p_of_chi_square(statistic, std::max(cells - 1, 1));
}

// Whether two samples over the same cells have the same law.
inline double same_law_p(const std::map<uint64_t, double>& a, const std::map<uint64_t, double>& b) {
  double a_total = 0, b_total = 0, statistic = 0;
  std::map<uint64_t, std::pair<double, double>> cells;
  for (const auto& [cell, n] : a) cells[cell].first = n, a_total += n;
  for (const auto& [cell, n] : b) cells[cell].second = n, b_total += n;
  for (const auto& [cell, n] : cells) {
    const double difference = n.first * std::sqrt(b_total / a_total) - n.second * std::sqrt(a_total / b_total);
    statistic += difference * difference / (n.first + n.second);
  }
  return cells.size() < 2 ? 1.0 : p_of_chi_square(statistic, static_cast<double>(cells.size()) - 1);
}

// Kolmogorov–Smirnov; sorts the sample.
inline double kolmogorov_smirnov_p(std::vector<double>& sample, const std::function<double(double)>& cdf_of) {
  std::sort(sample.begin(), sample.end());
  const auto n = static_cast<double>(sample.size());
  double distance = 0;
  for (size_t i = 0; i < sample.size(); ++i) {
    const double f = cdf_of(sample[i]);
    distance = std::max({distance, f - static_cast<double>(i) / n, static_cast<double>(i + 1) / n - f});
  }
  const double t = distance * (std::sqrt(n) + 0.12 + 0.11 / std::sqrt(n));
  double p = 0;
  for (int k = 1; k <= 100; ++k) p += (k % 2 == 1 ? 2 : -2) * std::exp(-2.0 * k * k * t * t);
  return std::clamp(p, 0.0, 1.0);
}

// Independent of itself `lag` later.
inline double serial_correlation_p(std::span<const double> x, size_t lag) {
  double sum = 0;
  for (size_t i = lag; i < x.size(); ++i) sum += x[i] * x[i - lag];
  return p_of_z(sum / std::sqrt(static_cast<double>(x.size() - lag)));
}

// Standard normal samples, values and squares alike.
inline double correlation_p(std::span<const double> x, std::span<const double> y) {
  double values = 0, squares = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    values += x[i] * y[i];
    squares += (x[i] * x[i] - 1) * (y[i] * y[i] - 1) / 2;
  }
  const double n = std::sqrt(static_cast<double>(x.size()));
  return std::min(1.0, 2 * std::min(p_of_z(values / n), p_of_z(squares / n)));
}

// Every statistic that a standard normal sample should pass, by name.
inline std::map<std::string, double> normality(std::vector<double> x) {
  const auto n = static_cast<double>(x.size());
  std::map<std::string, double> p;
  for (const size_t lag : {1, 2, 4, 2048}) p["lag " + std::to_string(lag)] = serial_correlation_p(x, lag);

  double m1 = 0, m2 = 0, m3 = 0, m4 = 0, positive = 0;
  std::map<int, double> beyond;
  constexpr int kCells = 512;
  std::vector<double> seen(kCells), due(kCells, n / kCells);
  for (const double v : x) {
    m1 += v;
    m2 += v * v;
    m3 += v * v * v;
    m4 += v * v * v * v;
    positive += v > 0 ? 1 : 0;
    for (const int edge : {2, 3, 4}) beyond[edge] += std::abs(v) > edge ? 1 : 0;
    seen[static_cast<size_t>(std::clamp(normal_cdf(v) * kCells, 0.0, kCells - 1.0))] += 1;
  }
  p["mean"] = p_of_z(m1 / std::sqrt(n));
  p["variance"] = p_of_z((m2 - n) / std::sqrt(2 * n));
  p["third moment"] = p_of_z(m3 / std::sqrt(15 * n));
  p["fourth moment"] = p_of_z((m4 - 3 * n) / std::sqrt(96 * n));
  p["sign"] = p_of_count(positive, n, 0.5);
  for (const auto& [edge, count] : beyond) {
    p["beyond " + std::to_string(edge)] = p_of_count(count, n, 2 * normal_cdf(-edge));
  }
  p["chi-square"] = chi_square_p(seen, due);
  p["Kolmogorov-Smirnov"] = kolmogorov_smirnov_p(x, normal_cdf);
  return p;
}

inline double smallest(const std::map<std::string, double>& p_values) {
  double least = 1;
  for (const auto& [name, p] : p_values) least = std::min(least, p);
  return least;
}

}  // namespace sotto::privacy

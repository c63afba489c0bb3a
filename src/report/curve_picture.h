// A fitted clipping curve as a picture.
#pragma once

#include "methods/dpsgd/curve_fit.h"

#include <filesystem>
#include <string>
#include <vector>

namespace sotto::report {

struct CurveSummary {
  std::string title;
  std::string subtitle;
  methods::CurveFit fit;
  std::vector<double> x;                      // of every budget that was tried
  std::vector<double> bounds;                 // that were tried
  std::vector<std::vector<double>> accuracy;  // [budget][bound]
};

// A PNG with the budget from left to right and the bound upwards, logarithmic where the range exceeds a decade. A pale
// disc for every pair that was tried, darker the nearer it comes to the best of its budget; the best bounds, those that
// were dropped hollow and crossed out; a line for every family, clamped as it would be used, the chosen one heavy.
// Written atomically.
void write_curve_picture(const std::filesystem::path& path, const CurveSummary& summary);

}  // namespace sotto::report

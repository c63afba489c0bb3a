// curve.json: what `sotto fit` leaves behind, for programs and people.
//
//   curve       the curve, as method.curve reads it
//   fit         how it was found: families with their figures, points, the matrix of accuracies
//   mechanism   what was simulated
#pragma once

#include "experiments/fit_grid.h"
#include "methods/dpsgd/curve_fit.h"

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace sotto::experiments {

// Accuracies of every pair over the repeats, [budget][bound], and where each budget lies on both axes.
struct FitMatrix {
  std::vector<std::vector<double>> mean, std;
  std::vector<double> signal_to_noise;  // of one step at each budget
  std::vector<double> x;                // the budget on the curve's axis
  std::vector<size_t> best;             // index of the best bound of each budget
  std::vector<bool> clears;             // whether that is above chance; the curve does not pass through others
  double chance = 0;
};

// `simulated` is one of the runs. Figures are rounded to six digits, the curve to ten.
nlohmann::ordered_json curve_file(const FitGrid& grid, const config::RunSpec& simulated, const FitMatrix& matrix,
                                  const methods::CurveFit& fit);

// Indented, but lists of numbers on one line.
std::string readable(const nlohmann::ordered_json& value);

// The matrix with the best of each row marked, and the families.
std::string describe_fit(const FitGrid& grid, const FitMatrix& matrix, const methods::CurveFit& fit);

}  // namespace sotto::experiments

// [fit]: how `sotto fit` learns a clipping curve.
#pragma once

#include "methods/dpsgd/clip_curve.h"
#include "settings/section.h"

#include <cstdint>
#include <string>
#include <vector>

namespace sotto::experiments {

struct FitOptions {
  std::string proxy;            // the public dataset that stands for the clients' data; its partition is that of [data]
  int64_t limit = 0;            // training records of it; 0 = as [data]
  int64_t clients = 0;          // simulated; 0 = as [data]
  int64_t rounds = 0;           // simulated; 0 = as the run
  std::vector<double> budgets;  // ε to try; empty = those of [privacy]
  std::vector<double> bounds;   // clipping bounds to try
  int64_t repeats = 3;          // seeds per pair
  methods::CurveAxis axis = methods::CurveAxis::kEpsilon;  // what the bound is a function of
  bool outliers = true;                                    // drop points by the inter-quartile rule
  bool monotone = false;                                   // the bound never falls as the budget grows

  bool operator==(const FitOptions&) const = default;
};

FitOptions read_fit_options(settings::Section section);

}  // namespace sotto::experiments

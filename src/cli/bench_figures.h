// What benchmarks share: medians, and how figures are printed.
#pragma once

#include "cli/output.h"

#include <nlohmann/json_fwd.hpp>

#include <vector>

namespace sotto::cli {

// The upper one of an even number.
double median(std::vector<double> values);

// An object of named figures, as JSON or as a table.
void print_figures(const nlohmann::json& figures, const OutputOptions& output);

}  // namespace sotto::cli

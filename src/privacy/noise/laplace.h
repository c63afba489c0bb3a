// Laplace noise on a grid (see grid.h): values become step·(round(x/step) + round(L)), L Laplace of scale/step.
//
// The integer round(L) is drawn exactly: |L| in half steps is a geometric variable, and rounding it merges two
// neighbours. So accounting for the continuous Laplace mechanism holds at the charged ℓ1 sensitivity; alone,
// ε = charged_l1_sensitivity/scale, δ = 0. About half a microsecond per value.
#pragma once

#include "privacy/noise/grid.h"
#include "privacy/noise/noise_source.h"

#include <cstdint>
#include <span>

namespace sotto::privacy {

// Refuses the same values as add_gaussian. `sensitivity` is ℓ1.
GridNoise add_laplace(std::span<float> values, double scale, double sensitivity, NoiseSource& source);
GridNoise add_laplace(std::span<double> values, double scale, double sensitivity, NoiseSource& source);
GridNoise add_laplace(std::span<float> values, const NoiseGrid& grid, NoiseSource& source);
GridNoise add_laplace(std::span<double> values, const NoiseGrid& grid, NoiseSource& source);

// round(Laplace(2^log2_scale)).
int64_t laplace_integer(int log2_scale, NoiseSource& source);

}  // namespace sotto::privacy

// Refuses values that have no place on a grid, before noise is drawn for them.
#pragma once

#include "privacy/noise/grid.h"

#include <span>

namespace sotto::privacy {

// UserError if a value is NaN, infinite or beyond grid.largest_value(), or if the grid is not one of make_grid's. The
// message names no value: they are private.
void require_on_grid(std::span<const float> values, const NoiseGrid& grid);
void require_on_grid(std::span<const double> values, const NoiseGrid& grid);

}  // namespace sotto::privacy

// The grid on which noisy values are published, and what it costs.
//
// A mechanism here publishes step·(q(x) + Y): q(x) = round(x/step) is an integer and so is the noise Y, which is the
// rounding of continuous noise of scale 2^log2_scale. Since q(x) is an integer, q(x) + round(Z) = round(q(x) + Z): what
// is published is a function of the ideal continuous mechanism applied to q(x). Its privacy is therefore exactly what
// accountants compute for the continuous one, at the sensitivity of q; every bit of the published number is a function
// of the noisy integer.
//
// Rounding moves a coordinate by at most ½ + 2^-7 steps (the division is done in double precision and |x| is at most
// 2^46 steps), two neighbouring inputs by at most 1 + 2^-6 steps per coordinate more than they differ. Hence the
// charged sensitivities below. A grid depends on public quantities only, never on the values.
#pragma once

#include <cstddef>

namespace sotto::privacy {

struct NoiseGrid {
  double step = 0;
  int log2_scale = 0;  // the noise's scale (Gaussian: stddev) is 2^log2_scale steps

  double noise_scale() const;
  // Values beyond this are refused.
  double largest_value() const;
};

// A grid for noise of this scale. UserError unless scale is positive and between 1e-30 and 1e30, and log2_scale is
// between 20 and 44.
NoiseGrid make_grid(double noise_scale, int log2_scale);

// The coarsest grid for `count` values whose rounding adds at most a thousandth (2^-10·(1+2^-6)) to an ℓ2 sensitivity
// (Gaussian) or an ℓ1 sensitivity (Laplace). UserError if the parameters are not positive and finite, or if no grid is
// fine enough: noise so large against the sensitivity that the published values are noise alone.
NoiseGrid gaussian_grid(double stddev, double sensitivity, size_t count);
NoiseGrid laplace_grid(double scale, double sensitivity, size_t count);

// What to charge for a release of `count` values with this sensitivity, rounded up.
double charged_l2_sensitivity(const NoiseGrid& grid, double sensitivity, size_t count);
double charged_l1_sensitivity(const NoiseGrid& grid, double sensitivity, size_t count);

// What a release says of its noise.
struct GridNoise {
  double grid = 0;             // published values are multiples of it, rounded to their type
  double scale = 0;            // of the noise, in multiples of the grid
  double total_variation = 0;  // distance of all the noise together from the ideal, given ideal random bits
};

}  // namespace sotto::privacy

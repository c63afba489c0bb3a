// The shapes of the digits 0–9 in several typefaces, as polygons.
#pragma once

#include <array>
#include <vector>

namespace sotto::data {

struct Point {
  double x;
  double y;
};

// Closed contours, to be filled by the winding rule. Centred on the origin, one unit high, y downwards.
using Outline = std::vector<std::vector<Point>>;

using DigitOutlines = std::array<Outline, 10>;

// One entry per typeface. Throws a UserError that names the package if the typefaces are not installed.
std::vector<DigitOutlines> load_digit_outlines();

}  // namespace sotto::data

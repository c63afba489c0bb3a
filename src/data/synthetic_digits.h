// Digits that the project draws itself: a dataset that needs no download.
#pragma once

#include "data/dataset.h"

#include <cstdint>

namespace sotto::data {

// RGB images, 32×32, of the digits 0–9 in the DejaVu typefaces: turned, sheared, stretched, bent and shifted, with
// strokes of different weight, over coloured backgrounds with clutter and pieces of other digits. Classes are balanced
// to within one record. The images depend on the seed and their position alone, not on the number of threads or of
// images asked for. Throws a UserError for less than one training record or a negative number of test records, or if
// the typefaces (package fonts-dejavu-core) are not installed.
Dataset synthetic_digits(int64_t train, int64_t test, uint64_t seed);

}  // namespace sotto::data

#include "bench/median.h"

#include <algorithm>

namespace sotto::bench {

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace sotto::bench

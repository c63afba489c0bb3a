#include "privacy/neighbours.h"

namespace sotto::privacy {

double sum_sensitivity(double bound, Adjacency adjacency) {
  return is_one_sided(adjacency) ? bound : 2 * bound;
}

}  // namespace sotto::privacy

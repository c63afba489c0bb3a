#include "privacy/neighbours.h"

namespace sotto::privacy {

double sum_sensitivity(double bound, Adjacency adjacency) {
  return adjacency == Adjacency::kAddRemove ? bound : 2 * bound;
}

}  // namespace sotto::privacy

#include "privacy/neighbours.h"

namespace sotto::privacy {

Neighbours neighbours_of(const config::PrivacyOptions& options) {
  return {adjacency_from_text(options.adjacency), options.unit == "client" ? Unit::kClient : Unit::kRecord};
}

double sum_sensitivity(double bound, Adjacency adjacency) {
  return adjacency == Adjacency::kAddRemove ? bound : 2 * bound;
}

}  // namespace sotto::privacy

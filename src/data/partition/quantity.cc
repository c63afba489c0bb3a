#include "data/partition/rules.h"

#include <numeric>

namespace sotto::data::partitioning {

std::vector<Group> quantity(const Request& request) {
  const auto clients = static_cast<size_t>(request.options.clients);
  Group all;
  all.rows.resize(static_cast<size_t>(request.train.size()));
  std::iota(all.rows.begin(), all.rows.end(), 0);
  RandomStream stream(request.seed, "partition-quantity");
  all.counts = apportion(request.train.size(), stream.dirichlet(request.options.alpha, clients));
  std::vector<Group> groups{std::move(all)};
  raise_to_minimum(groups, request.options.clients, request.needed);
  return groups;
}

}  // namespace sotto::data::partitioning

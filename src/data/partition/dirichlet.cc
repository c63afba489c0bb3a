#include "data/partition/rules.h"

namespace sotto::data::partitioning {
namespace {

// holders[c] clients, the first ones, share class c.
std::vector<Group> deal_classes(const Request& request, const std::vector<int64_t>& holders) {
  std::vector<Group> groups;
  const auto rows = rows_by_key(request.train.y, request.train.classes);
  for (size_t label = 0; label < rows.size(); ++label) {
    RandomStream stream(request.seed, "partition-dirichlet", 0, label);
    const auto weights = stream.dirichlet(request.options.alpha, static_cast<size_t>(holders[label]));
    groups.push_back({rows[label], apportion(static_cast<int64_t>(rows[label].size()), weights)});
  }
  raise_to_minimum(groups, request.options.clients, request.needed);
  return groups;
}

}  // namespace

std::vector<Group> dirichlet(const Request& request) {
  return deal_classes(request,
                      std::vector<int64_t>(static_cast<size_t>(request.train.classes), request.options.clients));
}

std::vector<Group> distribution_2(const Request& request) {
  check_private_label(request);
  std::vector<int64_t> holders(static_cast<size_t>(request.train.classes), request.options.clients);
  --holders[static_cast<size_t>(request.options.private_label)];
  return deal_classes(request, holders);
}

}  // namespace sotto::data::partitioning

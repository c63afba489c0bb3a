#include "base/error.h"
#include "data/partition/rules.h"

namespace sotto::data::partitioning {

std::vector<Group> by_domain(const Request& request) {
  const int64_t domains = request.train.domains;
  const int64_t clients = request.options.clients;
  if (domains < 2) {
    fail_user(
        "partition 'domain' needs several domains, but dataset '{}' has one: list some in data.domains "
        "(for images: plain, inverted, rotated, …)",
        request.dataset.name);
  }
  if (clients < domains) {
    fail_user(
        "partition 'domain': {} clients cannot hold the {} domains of dataset '{}', one each: raise data.clients "
        "or list fewer in data.domains",
        clients, domains, request.dataset.name);
  }
  std::vector<Group> groups;
  auto rows = rows_by_key(request.train.domain, domains);
  for (int64_t domain = 0; domain < domains; ++domain) {
    auto& members = rows[static_cast<size_t>(domain)];
    const int64_t holders = (clients - domain - 1) / domains + 1;
    const auto parts = even_parts(static_cast<int64_t>(members.size()), holders);
    std::vector<int64_t> counts(static_cast<size_t>(clients), 0);
    for (int64_t i = 0; i < holders; ++i)
      counts[static_cast<size_t>(domain + i * domains)] = parts[static_cast<size_t>(i)];
    groups.push_back({std::move(members), std::move(counts)});
  }
  return groups;
}

}  // namespace sotto::data::partitioning

#include "data/partition/rules.h"

#include <numeric>

namespace sotto::data::partitioning {

std::vector<Group> iid(const Request& request) {
  Group all;
  all.rows.resize(static_cast<size_t>(request.train.size()));
  std::iota(all.rows.begin(), all.rows.end(), 0);
  all.counts = even_parts(request.train.size(), request.options.clients);
  return {all};
}

}  // namespace sotto::data::partitioning

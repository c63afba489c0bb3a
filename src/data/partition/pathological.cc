#include "base/error.h"
#include "data/partition/rules.h"

namespace sotto::data::partitioning {

std::vector<Group> pathological(const Request& request) {
  const auto& [options, dataset, train, seed, needed] = request;
  const auto present = classes_present(train);
  const auto available = static_cast<int64_t>(present.size());
  if (options.classes_per_client < 1 || options.classes_per_client > available) {
    fail_user("data.classes_per_client is {}, but dataset '{}' has records of {} classes: choose 1 … {}",
              options.classes_per_client, dataset.name, available, available);
  }
  ClassDeck deck(present, RandomStream(seed, "partition-classes"));
  std::vector<std::vector<size_t>> holders(static_cast<size_t>(train.classes));
  for (size_t client = 0; client < static_cast<size_t>(options.clients); ++client) {
    for (const int64_t label : deck.hand(options.classes_per_client))
      holders[static_cast<size_t>(label)].push_back(client);
  }
  std::vector<Group> groups;
  auto rows = rows_by_key(train.y, train.classes);
  for (size_t label = 0; label < rows.size(); ++label) {
    if (holders[label].empty()) continue;
    if (rows[label].size() < holders[label].size()) {
      fail_user("class '{}' has {} training records for the {} clients that should hold it: use fewer data.clients",
                dataset.class_names[label], rows[label].size(), holders[label].size());
    }
    const auto parts =
        even_parts(static_cast<int64_t>(rows[label].size()), static_cast<int64_t>(holders[label].size()));
    std::vector<int64_t> counts(static_cast<size_t>(options.clients), 0);
    for (size_t i = 0; i < parts.size(); ++i) counts[holders[label][i]] = parts[i];
    groups.push_back({std::move(rows[label]), std::move(counts)});
  }
  return groups;
}

}  // namespace sotto::data::partitioning

#include "base/error.h"
#include "data/partition/rules.h"

#include <algorithm>

namespace sotto::data::partitioning {

void check_private_label(const Request& request) {
  const auto& options = request.options;
  if (options.clients < 2) {
    fail_user("partition '{}' needs the curious client and at least one other: set data.clients to 2 or more",
              options.partition);
  }
  if (options.private_label < 0 || options.private_label >= request.train.classes) {
    fail_user("data.private_label is {}, but the classes of dataset '{}' are 0 … {}", options.private_label,
              request.dataset.name, request.train.classes - 1);
  }
  if (std::find(request.train.y.begin(), request.train.y.end(), options.private_label) == request.train.y.end()) {
    fail_user("data.private_label: dataset '{}' has no training records of class '{}': choose another",
              request.dataset.name, request.dataset.class_names[static_cast<size_t>(options.private_label)]);
  }
}

std::vector<Group> private_label(const Request& request) {
  check_private_label(request);
  Group hidden;
  Group open;
  for (int64_t row = 0; row < request.train.size(); ++row) {
    const bool is_private = request.train.y[static_cast<size_t>(row)] == request.options.private_label;
    (is_private ? hidden : open).rows.push_back(row);
  }
  hidden.counts = even_parts(static_cast<int64_t>(hidden.rows.size()), request.options.clients - 1);
  open.counts = even_parts(static_cast<int64_t>(open.rows.size()), request.options.clients);
  return {hidden, open};
}

}  // namespace sotto::data::partitioning

#include "run/partition_summary.h"

#include "data/partition.h"

#include <fmt/format.h>

namespace sotto::run {
namespace {

constexpr int64_t kShownClients = 200;

}  // namespace

report::PartitionSummary summarise_partition(const federation::Setup& setup) {
  const data::DataOptions& options = setup.spec().data;
  const bool uses_alpha = data::find_partition(options.partition).has("alpha");
  return {.title = fmt::format("{}, {}{}", options.name, options.partition,
                               uses_alpha ? fmt::format(" (alpha {})", options.alpha) : ""),
          .counts = data::class_counts(setup.partition(), setup.dataset(), kShownClients),
          .class_names = setup.dataset().class_names,
          .clients = options.clients};
}

}  // namespace sotto::run

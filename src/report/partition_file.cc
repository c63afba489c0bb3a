#include "report/partition_file.h"

#include "base/files.h"

#include <nlohmann/json.hpp>

namespace sotto::report {

void write_partition_file(const fs::path& path, const PartitionSummary& summary) {
  const at::Tensor counts = summary.counts.contiguous();
  const int64_t classes = counts.size(1);
  nlohmann::json rows = nlohmann::json::array();
  for (int64_t client = 0; client < counts.size(0); ++client) {
    const int64_t* row = counts.data_ptr<int64_t>() + client * classes;
    rows.push_back(std::vector<int64_t>(row, row + classes));
  }
  const nlohmann::json value = {
      {"title", summary.title}, {"clients", summary.clients}, {"classes", summary.class_names}, {"counts", rows}};
  write_file_atomically(path, value.dump() + "\n");
}

}  // namespace sotto::report

#include "methods/prototypes/prepared_records.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <mutex>
#include <vector>

namespace sotto::methods {
namespace {

constexpr int64_t kRows = 1024;

struct Kept {
  const void* source = nullptr;  // the records' memory, which whoever shares a copy keeps alive
  PrototypeModelOptions options;
  uint64_t seed = 0;
  std::weak_ptr<const data::Records> records;
};

std::shared_ptr<const data::Records> prepare_all(const data::Records& records, const PrototypeModel& model) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> parts;
  for (int64_t begin = 0; begin < records.size(); begin += kRows) {
    parts.push_back(model.prepare(records.x.narrow(0, begin, std::min(kRows, records.size() - begin))));
  }
  auto prepared = std::make_shared<data::Records>(records);
  prepared->x = at::cat(parts);
  return prepared;
}

}  // namespace

std::shared_ptr<const data::Records> prepared_records(const data::Records& records, const PrototypeModel& model,
                                                      uint64_t seed) {
  if (!model.has_fixed_part() || records.size() == 0 || records.x.dim() != 2 || !records.x.is_floating_point()) {
    return nullptr;
  }
  static std::mutex mutex;
  static std::vector<Kept> all;
  const std::lock_guard lock(mutex);
  std::erase_if(all, [](const Kept& kept) { return kept.records.expired(); });
  for (const Kept& kept : all) {
    const auto shared = kept.records.lock();
    const bool fits = kept.source == records.x.data_ptr() && kept.seed == seed && kept.options == model.options();
    if (shared && fits && shared->size() == records.size()) return shared;
  }
  const auto prepared = prepare_all(records, model);
  all.push_back({records.x.data_ptr(), model.options(), seed, prepared});
  return prepared;
}

}  // namespace sotto::methods

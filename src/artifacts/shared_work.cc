#include "artifacts/shared_work.h"

#include "artifacts/run_lock.h"
#include "base/error.h"
#include "base/files.h"
#include "base/parallel.h"

#include <chrono>
#include <mutex>
#include <thread>

namespace sotto::artifacts {
namespace {

constexpr auto kPause = std::chrono::milliseconds(300);

fs::path result_of(const SharedWork& work, int64_t item) {
  return work.folder / std::to_string(item) / "result";
}

// False if another process is at it.
bool make_sure_of(const SharedWork& work, int64_t item) {
  const fs::path result = result_of(work, item);
  if (fs::exists(result)) return true;
  try {
    make_folder(result.parent_path());
    const RunLock lock(result.parent_path());
    if (!fs::exists(result)) write_file_atomically(result, work.make(item));
    return true;
  } catch (const RunBusy&) {
    return false;
  }
}

}  // namespace

std::vector<std::string> share(const SharedWork& work) {
  std::vector<int64_t> open;
  for (int64_t item = 0; item < work.items; ++item) open.push_back(item);
  std::mutex mutex;
  while (!open.empty()) {
    std::vector<int64_t> left;
    parallel_in_order(
        static_cast<int64_t>(open.size()), work.threads,
        [&](int64_t index, int) {
          const int64_t item = open[static_cast<size_t>(index)];
          if (work.over()) return;
          const bool made = make_sure_of(work, item);
          const std::lock_guard lock(mutex);
          if (!made) left.push_back(item);
          if (made && work.done) work.done(item);
        },
        [](int64_t) {});
    open = std::move(left);
    if (!open.empty()) std::this_thread::sleep_for(kPause);
  }
  std::vector<std::string> results;
  try {
    for (int64_t item = 0; item < work.items; ++item) results.push_back(read_file(result_of(work, item)));
  } catch (const UserError&) {
    if (!work.over()) throw;
    results.clear();
  }
  return results;
}

}  // namespace sotto::artifacts

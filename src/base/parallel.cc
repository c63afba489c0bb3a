#include "base/parallel.h"

#include <ATen/Parallel.h>

#include <sched.h>

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace sotto {
namespace {

class OrderedRun {
 public:
  OrderedRun(int64_t count, int threads, const std::function<void(int64_t, int)>& work,
             const std::function<void(int64_t)>& finish)
      : count_(count),
        window_(2 * static_cast<int64_t>(threads)),
        work_(work),
        finish_(finish),
        done_(static_cast<size_t>(window_), false) {}

  void worker(int index) {
    at::set_num_threads(1);
    std::unique_lock lock(mutex_);
    while (true) {
      room_.wait(lock, [&] { return error_ || next_ >= count_ || next_ < finished_ + window_; });
      if (error_ || next_ >= count_) return;
      const int64_t item = next_++;
      lock.unlock();
      std::exception_ptr error;
      try {
        work_(item, index);
      } catch (...) {
        error = std::current_exception();
      }
      lock.lock();
      if (error) {
        stop(error);
        return;
      }
      done_[slot(item)] = true;
      finish_ready(lock);
    }
  }

  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  size_t slot(int64_t item) const { return static_cast<size_t>(item % window_); }

  void stop(const std::exception_ptr& error) {
    if (!error_) error_ = error;
    room_.notify_all();
  }

  // Whoever completes the earliest open item finishes it and all completed ones behind it; the others go on working.
  void finish_ready(std::unique_lock<std::mutex>& lock) {
    if (finishing_) return;
    finishing_ = true;
    while (!error_ && finished_ < next_ && done_[slot(finished_)]) {
      const int64_t item = finished_;
      done_[slot(item)] = false;
      lock.unlock();
      std::exception_ptr error;
      try {
        finish_(item);
      } catch (...) {
        error = std::current_exception();
      }
      lock.lock();
      ++finished_;
      if (error) stop(error);
      room_.notify_all();
    }
    finishing_ = false;
  }

  const int64_t count_;
  const int64_t window_;
  const std::function<void(int64_t, int)>& work_;
  const std::function<void(int64_t)>& finish_;
  std::mutex mutex_;
  std::condition_variable room_;
  std::vector<bool> done_;
  int64_t next_ = 0;
  int64_t finished_ = 0;
  bool finishing_ = false;
  std::exception_ptr error_;
};

}  // namespace

int available_threads() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (::sched_getaffinity(0, sizeof(allowed), &allowed) == 0) return std::max(1, CPU_COUNT(&allowed));
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

void parallel_in_order(int64_t count, int threads, const std::function<void(int64_t, int)>& work,
                       const std::function<void(int64_t)>& finish) {
  threads = static_cast<int>(std::clamp<int64_t>(threads, 1, std::max<int64_t>(count, 1)));
  OrderedRun run(count, threads, work, finish);
  std::vector<std::thread> pool;
  pool.reserve(static_cast<size_t>(threads));
  for (int index = 0; index < threads; ++index) pool.emplace_back([&run, index] { run.worker(index); });
  for (auto& thread : pool) thread.join();
  run.rethrow();
}

}  // namespace sotto

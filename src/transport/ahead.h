// Answers that are computed on threads of their own and taken in order by somebody else. Work goes on while answers wait
// to be taken, up to so many bytes of them.
#pragma once

#include "base/parallel.h"

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

namespace sotto::transport {

inline constexpr int64_t kMostBytesAhead = int64_t{64} << 20;

template <typename Answer>
class Ahead {
 public:
  // work(item, worker) for items 0 … count-1, worker in [0, threads); bytes(answer) is what it takes while it waits.
  Ahead(int64_t count, int threads, std::function<Answer(int64_t item, int worker)> work,
        std::function<int64_t(const Answer&)> bytes)
      : bytes_of_(std::move(bytes)) {
    if (count > 0) thread_ = std::thread([this, count, threads, work = std::move(work)] { run(count, threads, work); });
  }
  // What nobody takes any more is not begun.
  ~Ahead() {
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
  }
  Ahead(const Ahead&) = delete;
  Ahead& operator=(const Ahead&) = delete;

  // The next answer, once it is there; what work threw. Called at most `count` times.
  Answer next() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !waiting_.empty() || error_; });
    if (waiting_.empty()) std::rethrow_exception(error_);
    Answer answer = std::move(waiting_.front());
    waiting_.pop_front();
    bytes_ -= bytes_of_(answer);
    changed_.notify_all();
    return answer;
  }

 private:
  struct Stopped : std::exception {};

  void run(int64_t count, int threads, const std::function<Answer(int64_t, int)>& work) {
    try {
      std::vector<std::optional<Answer>> answers(static_cast<size_t>(count));
      parallel_in_order(
          count, threads,
          [&](int64_t item, int worker) {
            throw_if_stopped();
            answers[static_cast<size_t>(item)] = work(item, worker);
          },
          [&](int64_t item) {
            put(std::move(*answers[static_cast<size_t>(item)]));
            answers[static_cast<size_t>(item)].reset();
          });
    } catch (...) {
      const std::lock_guard lock(mutex_);
      error_ = std::current_exception();
      changed_.notify_all();
    }
  }

  void throw_if_stopped() {
    const std::lock_guard lock(mutex_);
    if (stopped_) throw Stopped();
  }

  void put(Answer answer) {
    std::unique_lock lock(mutex_);
    const int64_t bytes = bytes_of_(answer);
    changed_.wait(lock, [&] { return stopped_ || waiting_.empty() || bytes_ + bytes <= kMostBytesAhead; });
    if (stopped_) throw Stopped();
    bytes_ += bytes;
    waiting_.push_back(std::move(answer));
    changed_.notify_all();
  }

  const std::function<int64_t(const Answer&)> bytes_of_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Answer> waiting_;
  int64_t bytes_ = 0;
  bool stopped_ = false;
  std::exception_ptr error_;
  std::thread thread_;
};

}  // namespace sotto::transport

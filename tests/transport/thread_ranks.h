// Ranks that are threads of this process: what MPI does, without MPI.
#pragma once

#include "transport/ranks.h"

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace sotto::transport {

// Where messages lie until they are received, by (from, to).
class PostOffice {
 public:
  void put(int from, int to, std::string bytes) {
    const std::lock_guard lock(mutex_);
    boxes_[{from, to}].push_back(std::move(bytes));
    arrived_.notify_all();
  }
  std::string take(int from, int to) {
    std::unique_lock lock(mutex_);
    auto& box = boxes_[{from, to}];
    arrived_.wait(lock, [&] { return closed_ || !box.empty(); });
    if (box.empty()) throw std::runtime_error("a rank was aborted");
    std::string bytes = std::move(box.front());
    box.pop_front();
    return bytes;
  }
  void close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    arrived_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::map<std::pair<int, int>, std::deque<std::string>> boxes_;
  bool closed_ = false;
};

class ThreadRanks : public Ranks {
 public:
  ThreadRanks(std::shared_ptr<PostOffice> post, int rank, int size)
      : post_(std::move(post)), rank_(rank), size_(size) {}

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void broadcast(std::string& bytes) override {
    if (rank_ > 0) bytes = post_->take(-1, rank_);
    for (int to = 1; rank_ == 0 && to < size_; ++to) post_->put(-1, to, bytes);
  }
  void send(int to, const std::string& bytes) override { post_->put(rank_, to, bytes); }
  std::string receive(int from) override { return post_->take(from, rank_); }
  double seconds_moving() const override { return 0; }
  void finish() override {}
  void abort(int) override { post_->close(); }

 private:
  const std::shared_ptr<PostOffice> post_;
  const int rank_;
  const int size_;
};

// Calls others(ranks) on the threads of ranks 1 … size-1 and first(ranks) on this one. What one of the others throws
// ends all and comes out here.
inline void run_ranks(int size, const std::function<void(Ranks&)>& first, const std::function<void(Ranks&)>& others) {
  const auto post = std::make_shared<PostOffice>();
  std::vector<std::exception_ptr> errors(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 1; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      ThreadRanks ranks(post, rank, size);
      try {
        others(ranks);
      } catch (...) {
        errors[static_cast<size_t>(rank)] = std::current_exception();
        ranks.abort(1);
      }
    });
  }
  ThreadRanks ranks(post, 0, size);
  try {
    first(ranks);
  } catch (...) {
    errors[0] = std::current_exception();
    ranks.abort(1);
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

}  // namespace sotto::transport

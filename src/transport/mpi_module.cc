// The module that speaks MPI: libsotto_mpi.so beside the program.
//
// Open MPI waits by spinning. Whoever waits here sleeps in between instead, so that a rank that has nothing to do leaves
// its core to one that has.
#include "transport/ranks.h"

#include <mpi.h>
#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <thread>

namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kLargestPiece = size_t{1} << 30;  // MPI counts in int
constexpr auto kSpin = std::chrono::microseconds(200);
constexpr auto kShortestSleep = std::chrono::microseconds(20);
constexpr auto kLongestSleep = std::chrono::microseconds(1000);

// MPI's own handler ends the job if a call fails, so that codes need not be looked at.
void wait(MPI_Request& request) {
  const auto begin = Clock::now();
  Clock::duration sleep = kShortestSleep;
  for (int done = 0;;) {
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (done != 0) return;
    if (Clock::now() - begin < kSpin) {
      std::this_thread::yield();
      continue;
    }
    std::this_thread::sleep_for(sleep);
    sleep = std::min<Clock::duration>(2 * sleep, kLongestSleep);
  }
}

// NOLINTBEGIN(clang-analyzer-optin.mpi.MPI-Checker): it knows MPI_Wait, which spins, and not that wait() tests to the end
class MpiRanks : public sotto::transport::Ranks {
 public:
  MpiRanks() {
    int provided = 0;
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
    ::prctl(PR_SET_TIMERSLACK, 1000UL, 0UL, 0UL, 0UL);  // ns: short sleeps are short
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  void broadcast(std::string& bytes) override {
    MPI_Request request = MPI_REQUEST_NULL;
    uint64_t length = bytes.size();
    auto begin = Clock::now();
    MPI_Ibcast(&length, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD, &request);
    wait(request);
    if (rank_ != 0) begin = Clock::now();  // until now it may have waited for rank 0 to have something to say
    bytes.resize(length);
    in_pieces(length, [&](size_t at, int count) {
      MPI_Ibcast(bytes.data() + at, count, MPI_BYTE, 0, MPI_COMM_WORLD, &request);
      wait(request);
    });
    count(begin);
  }

  void send(int to, const std::string& bytes) override {
    MPI_Request request = MPI_REQUEST_NULL;
    const uint64_t length = bytes.size();
    const auto begin = Clock::now();
    MPI_Isend(&length, 1, MPI_UINT64_T, to, kTag, MPI_COMM_WORLD, &request);
    wait(request);
    in_pieces(length, [&](size_t at, int count) {
      MPI_Isend(bytes.data() + at, count, MPI_BYTE, to, kTag, MPI_COMM_WORLD, &request);
      wait(request);
    });
    count(begin);
  }

  std::string receive(int from) override {
    MPI_Request request = MPI_REQUEST_NULL;
    uint64_t length = 0;
    MPI_Irecv(&length, 1, MPI_UINT64_T, from, kTag, MPI_COMM_WORLD, &request);
    wait(request);
    const auto begin = Clock::now();
    std::string bytes(length, '\0');
    in_pieces(length, [&](size_t at, int count) {
      MPI_Irecv(bytes.data() + at, count, MPI_BYTE, from, kTag, MPI_COMM_WORLD, &request);
      wait(request);
    });
    count(begin);
    return bytes;
  }

  double seconds_moving() const override { return seconds_; }
  void finish() override { MPI_Finalize(); }
  void abort(int exit_code) override { MPI_Abort(MPI_COMM_WORLD, exit_code); }

 private:
  static constexpr int kTag = 1;

  template <typename Move>
  static void in_pieces(size_t length, const Move& move) {
    for (size_t at = 0; at < length; at += kLargestPiece)
      move(at, static_cast<int>(std::min(kLargestPiece, length - at)));
  }
  void count(Clock::time_point begin) { seconds_ += std::chrono::duration<double>(Clock::now() - begin).count(); }

  int rank_ = 0;
  int size_ = 1;
  double seconds_ = 0;
};
// NOLINTEND(clang-analyzer-optin.mpi.MPI-Checker)

}  // namespace

extern "C" sotto::transport::Ranks* sotto_open_mpi() {
  return new MpiRanks();
}

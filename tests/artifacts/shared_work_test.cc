#include "artifacts/shared_work.h"

#include "../support/temp_folder.h"
#include "base/files.h"
#include "base/text.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

namespace sotto::artifacts {
namespace {

// Two processes: every item is made once, by one of them, and both have all results.
TEST(SharedWork, IsDoneOnceByWhoeverComesFirst) {
  const test::TempFolder folder;
  const auto work = [&] {
    return share({.folder = folder / "work", .items = 6, .threads = 1, .make = [&](int64_t item) {
                    append_line(folder / "made", std::to_string(item));
                    std::this_thread::sleep_for(std::chrono::milliseconds(30));
                    return "result " + std::to_string(item);
                  }});
  };
  const pid_t child = ::fork();
  if (child == 0) ::_exit(work().size() == 6 ? 0 : 1);
  const std::vector<std::string> results = work();
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  ASSERT_EQ(results.size(), 6U);
  EXPECT_EQ(results[4], "result 4");
  EXPECT_EQ(split(read_file(folder / "made"), '\n').size(), 7U) << "six lines";
}

TEST(SharedWork, GoesOnWhereItWasStopped) {
  const test::TempFolder folder;
  int64_t made = 0;
  const auto work = [&](int64_t fails_at) {
    return share({.folder = folder / "work", .items = 4, .threads = 1, .make = [&](int64_t item) {
                    if (item == fails_at) throw std::runtime_error("stopped");
                    ++made;
                    return std::string("x");
                  }});
  };
  EXPECT_THROW(work(2), std::runtime_error);
  EXPECT_EQ(work(-1).size(), 4U);
  EXPECT_EQ(made, 4) << "none twice";
}

TEST(SharedWork, IsLeftWhenNobodyNeedsItAnyMore) {
  const test::TempFolder folder;
  const auto results = share({.folder = folder / "work",
                              .items = 4,
                              .threads = 1,
                              .make = [](int64_t) -> std::string { throw std::runtime_error("it was begun"); },
                              .done = {},
                              .over = [] { return true; }});
  EXPECT_TRUE(results.empty());
}

}  // namespace
}  // namespace sotto::artifacts

#include "base/private_file.h"

#include "../support/expect_user_error.h"
#include "../support/temp_folder.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <thread>

namespace sotto {
namespace {

using test::TempFolder;

mode_t mode_of(const fs::path& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 ? status.st_mode & 0777U : 0U;
}

TEST(WritePrivateFile, IsForTheOwnerAloneAlsoOverAnotherFile) {
  const TempFolder folder;
  const mode_t old_mask = ::umask(0);
  write_private_file(folder / "key", "secret");
  EXPECT_EQ(mode_of(folder / "key"), 0600U);
  write_file_atomically(folder / "open", "before");
  EXPECT_EQ(mode_of(folder / "open"), 0666U);
  write_private_file(folder / "open", "after");
  ::umask(old_mask);
  EXPECT_EQ(mode_of(folder / "open"), 0600U);
  EXPECT_EQ(read_file(folder / "open"), "after");
}

// Whatever name it has while it is written, nobody else could have opened it.
TEST(WritePrivateFile, IsPrivateFromTheFirstMomentOn) {
  const TempFolder folder;
  const mode_t old_mask = ::umask(0);
  std::atomic<bool> done{false};
  std::atomic<int> seen{0};
  std::atomic<int> readable{0};
  std::thread watcher([&] {
    while (!done) {
      std::error_code gone;
      for (fs::directory_iterator entry(folder.path(), gone), end; !gone && entry != end; entry.increment(gone)) {
        const mode_t mode = mode_of(entry->path());
        seen += mode != 0 ? 1 : 0;
        readable += (mode & 077U) != 0 ? 1 : 0;
      }
    }
  });
  const std::string content(1 << 16, 'x');
  for (int i = 0; i < 200; ++i) write_private_file(folder / "key", content);
  done = true;
  watcher.join();
  ::umask(old_mask);
  EXPECT_GT(seen, 0);
  EXPECT_EQ(readable, 0);
}

TEST(WritePrivateFile, DoesNotFollowALinkThatWaitsForIt) {
  const TempFolder folder;
  write_file_atomically(folder / "elsewhere", "untouched");
  fs::create_symlink(folder / "elsewhere", (folder / "key").string() + fmt::format(".{}.tmp", ::getpid()));
  write_private_file(folder / "key", "secret");
  EXPECT_EQ(read_file(folder / "elsewhere"), "untouched");
  EXPECT_EQ(read_file(folder / "key"), "secret");
}

TEST(WritePrivateFile, FailsInOneLineAndLeavesNothing) {
  const TempFolder folder;
  EXPECT_USER_ERROR(write_private_file(folder / "no/such/key", "secret"), "cannot write");
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

}  // namespace
}  // namespace sotto

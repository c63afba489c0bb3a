#include "artifacts/run_lock.h"

#include "../support/temp_folder.h"
#include "base/files.h"
#include "base/launch.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

namespace sotto::artifacts {
namespace {

using ::testing::HasSubstr;

TEST(RunLock, IsOneProcesssAtATime) {
  const test::TempFolder folder;
  auto lock = std::make_unique<RunLock>(folder.path());
  EXPECT_THROW(RunLock second(folder.path()), RunBusy);
  EXPECT_THAT(lock_holder(folder.path()).value_or(""), HasSubstr(fmt::format("process {} on", ::getpid())));
  lock.reset();
  EXPECT_FALSE(lock_holder(folder.path()));
  EXPECT_NO_THROW(RunLock again(folder.path()));
}

TEST(RunLock, OfAKilledProcessIsFree) {
  const test::TempFolder folder;
  const pid_t child = ::fork();
  if (child == 0) {
    const RunLock lock(folder.path());
    ::raise(SIGKILL);
  }
  // Nobody has asked yet how it ended: its number is still taken.
  siginfo_t ended = {};
  ::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT);
  EXPECT_THAT(read_file(folder / "lock"), HasSubstr(std::to_string(child))) << "it left its name behind";
  EXPECT_FALSE(lock_holder(folder.path()));
  EXPECT_NO_THROW(RunLock lock(folder.path()));
  int status = 0;
  ::waitpid(child, &status, 0);
}

// The number of a process that is gone may be another's by now: the start tells them apart.
TEST(RunLock, OfAnotherProcessWithTheSameNumberIsFree) {
  const test::TempFolder folder;
  write_file_atomically(folder / "lock",
                        fmt::format(R"({{"host":"{}","pid":1,"started":"1 of long ago"}})", host_name()));
  EXPECT_NO_THROW(RunLock lock(folder.path()));
}

TEST(RunLock, OfAnotherMachineIsHeldAsFarAsIsKnown) {
  const test::TempFolder folder;
  write_file_atomically(folder / "lock", R"({"host":"elsewhere","pid":1,"started":"7"})");
  EXPECT_EQ(lock_holder(folder.path()), "process 1 on elsewhere");
  // Here the kernel's lock decides: it is a disk of this machine.
  if (!locks_reach_other_hosts(folder.path())) GTEST_SKIP() << "nothing is known of this file system's locks";
  EXPECT_NO_THROW(RunLock lock(folder.path()));
}

TEST(RunLock, KnowsWhichFileSystemsShareTheirLocks) {
  const test::TempFolder folder;
  const std::string data = std::filesystem::canonical(folder.path()).string();
  const auto reach = [&](const std::string& type, const std::string& options) {
    write_file_atomically(folder / "mounts",
                          fmt::format("21 1 8:1 / / rw - ext4 /dev/sda rw\n"
                                      "22 21 0:50 / {} rw,relatime shared:1 - {} server:/export rw,{}\n",
                                      data, type, options));
    return locks_reach_other_hosts(folder / "runs", folder / "mounts");
  };
  EXPECT_TRUE(reach("nfs4", "vers=4.2,local_lock=none"));
  EXPECT_FALSE(reach("nfs", "vers=3,nolock,local_lock=all"));
  EXPECT_FALSE(reach("nfs", "vers=3,local_lock=flock"));
  EXPECT_TRUE(reach("lustre", "flock"));
  EXPECT_FALSE(reach("lustre", "localflock"));
  EXPECT_FALSE(reach("fuse.sshfs", "user_id=0"));
  EXPECT_TRUE(reach("xfs", "noquota"));
}

}  // namespace
}  // namespace sotto::artifacts

#include "base/files.h"

#include "../support/expect_user_error.h"
#include "../support/synced_paths.h"
#include "../support/temp_folder.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <fstream>

namespace sotto {
namespace {

using test::SyncedPaths;
using test::TempFolder;
using ::testing::ElementsAre;

size_t entries_in(const fs::path& folder) {
  return static_cast<size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

TEST(ReadFile, ReturnsEveryByte) {
  const TempFolder folder;
  const std::string bytes("a\0b\r\n\xff", 6);
  write_file_atomically(folder / "x", bytes);
  EXPECT_EQ(read_file(folder / "x"), bytes);
  write_file_atomically(folder / "empty", std::string_view());
  EXPECT_EQ(read_file(folder / "empty"), "");
}

TEST(ReadFile, MissingFileAndFolderAreUserErrors) {
  const TempFolder folder;
  EXPECT_USER_ERROR(read_file(folder / "none"), "none");
  EXPECT_USER_ERROR(read_file(folder.path()), "folder");
}

TEST(WriteFileAtomically, ReplacesAndLeavesNothingElse) {
  const TempFolder folder;
  write_file_atomically(folder / "x", "old");
  write_file_atomically(folder / "x", "new");
  EXPECT_EQ(read_file(folder / "x"), "new");
  EXPECT_EQ(entries_in(folder.path()), 1u);
}

TEST(WriteFileAtomically, AFailingWriterLeavesTheOldContent) {
  const TempFolder folder;
  write_file_atomically(folder / "x", "old");
  const auto write = [](const fs::path& temporary) {
    std::ofstream(temporary) << "half";
    throw std::runtime_error("power cut");
  };
  EXPECT_THROW(write_file_atomically(folder / "x", write), std::runtime_error);
  EXPECT_EQ(read_file(folder / "x"), "old");
  EXPECT_EQ(entries_in(folder.path()), 1u);
}

TEST(WriteFileAtomically, MissingFolderIsAUserError) {
  const TempFolder folder;
  EXPECT_USER_ERROR(write_file_atomically(folder / "no/such/x", "text"), "cannot write");
}

TEST(WriteFileAtomically, AFullDiskIsAUserError) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "there is no /dev/full";
  const TempFolder folder;
  const auto write = [](const fs::path& temporary) {
    fs::create_symlink("/dev/full", temporary);
    std::ofstream stream(temporary);
    stream << "text" << std::flush;
    if (!stream) fail_user("cannot write: no space left");
  };
  EXPECT_USER_ERROR(write_file_atomically(folder / "x", write), "no space");
  EXPECT_EQ(entries_in(folder.path()), 0u);
}

TEST(WriteFileAtomically, LinksStayLinks) {
  const TempFolder folder;
  write_file_atomically(folder / "x", "old");
  fs::create_symlink("x", folder / "link");
  fs::create_symlink("not yet", folder / "dangling");
  write_file_atomically(folder / "link", "new");
  write_file_atomically(folder / "dangling", "made");
  EXPECT_TRUE(fs::is_symlink(folder / "link"));
  EXPECT_EQ(read_file(folder / "x"), "new");
  EXPECT_TRUE(fs::is_symlink(folder / "dangling"));
  EXPECT_EQ(read_file(folder / "not yet"), "made");
}

// As root, a device could be renamed over.
TEST(WriteFileAtomically, DevicesAndPipesAreNotReplaced) {
  const TempFolder folder;
  const fs::path pipe = folder / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  write_file_atomically(pipe, "text");
  std::array<char, 8> bytes = {};
  EXPECT_EQ(::read(reader, bytes.data(), bytes.size()), 4);
  EXPECT_STREQ(bytes.data(), "text");
  ::close(reader);
  EXPECT_USER_ERROR(write_file_atomically(pipe, [](const fs::path&) {}), "not a regular file");
  EXPECT_TRUE(fs::is_fifo(pipe));
  if (fs::exists("/dev/full")) {
    EXPECT_USER_ERROR(write_file_atomically("/dev/full", "text"), "cannot write /dev/full: No space left on device");
  }
}

// What is renamed into place is on disk before its name is.
TEST(WriteFileAtomically, SyncsTheFileAndThenItsFolder) {
  const TempFolder folder;
  const fs::path top = fs::canonical(folder.path());
  SyncedPaths::all().take();
  write_file_atomically(top / "x", "text");
  EXPECT_THAT(SyncedPaths::all().take(), ElementsAre(top / fmt::format("x.{}.tmp", ::getpid()), top));
}

TEST(AppendLine, KeepsWhatIsThereAndSyncs) {
  const TempFolder folder;
  const fs::path top = fs::canonical(folder.path());
  SyncedPaths::all().take();
  append_line(top / "x", "one");
  EXPECT_THAT(SyncedPaths::all().take(), ElementsAre(top / "x", top));
  append_line(top / "x", "two");
  EXPECT_THAT(SyncedPaths::all().take(), ElementsAre(top / "x"));
  EXPECT_EQ(read_file(top / "x"), "one\ntwo\n");
  EXPECT_USER_ERROR(append_line(folder / "no/such/x", "text"), "cannot write");
}

// A file-size limit stands in for a full disk: a part of the line is written before it fails.
TEST(AppendLine, TakesBackALineThatDoesNotFit) {
  const TempFolder folder;
  append_line(folder / "x", "one");
  const pid_t child = ::fork();
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit = {.rlim_cur = 8, .rlim_max = 8};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    try {
      append_line(folder / "x", "a longer line");
    } catch (const UserError&) {
      ::_exit(0);
    }
    ::_exit(1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(read_file(folder / "x"), "one\n");
}

TEST(MakeFolder, SyncsTheParentsOfWhatItMade) {
  const TempFolder folder;
  const fs::path top = fs::canonical(folder.path());
  SyncedPaths::all().take();
  make_folder(top / "a/b/c");
  EXPECT_THAT(SyncedPaths::all().take(), ElementsAre(top, top / "a", top / "a/b"));
  make_folder(top / "a/b/c");
  EXPECT_THAT(SyncedPaths::all().take(), ElementsAre());
}

TEST(MakeFolder, MakesParentsAndRefusesFiles) {
  const TempFolder folder;
  make_folder(folder / "a/b/c");
  EXPECT_TRUE(fs::is_directory(folder / "a/b/c"));
  make_folder(folder / "a/b/c");
  write_file_atomically(folder / "file", "");
  EXPECT_USER_ERROR(make_folder(folder / "file/below"), "cannot create");
}

TEST(Sha256, MatchesPublishedValues) {
  EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  const TempFolder folder;
  const std::string large(3'000'001, 'x');
  write_file_atomically(folder / "x", large);
  EXPECT_EQ(sha256_of_file(folder / "x"), sha256(large));
  EXPECT_USER_ERROR(sha256_of_file(folder / "none"), "none");
}

TEST(DataHome, FollowsTheEnvironment) {
  ::setenv("SOTTO_HOME", "/somewhere", 1);
  EXPECT_EQ(data_home(), "/somewhere");
  ::unsetenv("SOTTO_HOME");
  ::setenv("HOME", "/home/x", 1);
  EXPECT_EQ(data_home(), "/home/x/.local/share/sotto");
}

}  // namespace
}  // namespace sotto

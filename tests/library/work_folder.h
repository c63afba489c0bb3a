// A folder for one test, and a small federation of made-up digits in it.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace sotto {

class WorkFolder : public testing::Test {
 protected:
  WorkFolder() : folder_(std::filesystem::path(testing::TempDir()) / ("sotto-library-" + std::to_string(::getpid()))) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~WorkFolder() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path at(const std::string& name) const { return folder_ / name; }

  std::string config(const std::string& more = "") const {
    const std::filesystem::path file = folder_ / "config.toml";
    std::ofstream(file) << "rounds = 4\n[data]\nname = \"synthetic-digits\"\nlimit = 300\nclients = 3\n[model]\nname = "
                           "\"logistic\"\n"
                        << more;
    return file.string();
  }

 private:
  std::filesystem::path folder_;
};

}  // namespace sotto

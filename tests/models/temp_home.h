// A data home of its own for a test, and small datasets in it.
#pragma once

#include "../support/temp_folder.h"
#include "config/run_spec.h"
#include "data/dataset.h"
#include "data/readers/feature_file.h"

#include <ATen/ATen.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace sotto::models {

class TempHome {
 public:
  TempHome() {
    if (const char* old = std::getenv("SOTTO_HOME")) old_ = old;
    ::setenv("SOTTO_HOME", folder_.path().c_str(), 1);
  }
  ~TempHome() {
    if (old_.empty())
      ::unsetenv("SOTTO_HOME");
    else
      ::setenv("SOTTO_HOME", old_.c_str(), 1);
  }
  TempHome(const TempHome&) = delete;
  TempHome& operator=(const TempHome&) = delete;
  std::filesystem::path operator/(const std::string& name) const { return folder_ / name; }

 private:
  test::TempFolder folder_;
  std::string old_;
};

// Dark and bright 8×8 images, which any model can tell apart.
inline data::Dataset dark_and_bright(int64_t train, int64_t test, int64_t shade = 0) {
  const auto records = [&](int64_t count) {
    data::Records made;
    made.y = at::arange(count, at::kLong).remainder(2);
    made.domain = at::zeros({count}, at::kLong);
    const at::Tensor texture = at::arange(count * 64, at::kLong).remainder(37).view({count, 1, 8, 8});
    made.x = (texture + made.y.view({-1, 1, 1, 1}) * 150 + shade).to(at::kByte);
    return made;
  };
  data::Dataset dataset;
  dataset.name = "shades";
  dataset.class_names = {"dark", "bright"};
  dataset.domain_names = {"all"};
  dataset.train = records(train);
  if (test > 0) dataset.test = records(test);
  return dataset;
}

// Options that load what was written there.
inline data::DataOptions write_dataset(const std::filesystem::path& file, const data::Dataset& dataset) {
  data::write_feature_file(file, dataset);
  data::DataOptions options;
  options.name = "custom";
  options.path = file.string();
  return options;
}

}  // namespace sotto::models

// A federation small enough for tests: three Gaussian blobs in six dimensions, no files.
#pragma once

#include "base/text.h"
#include "config/load.h"
#include "federation/setup.h"
#include "methods/catalogue.h"

#include <ATen/ATen.h>

#include <functional>
#include <memory>

namespace sotto::federation {

inline data::Records blobs(int64_t count, uint64_t seed) {
  RandomStream stream(seed, "blobs");
  data::Records records;
  records.x = at::empty({count, 6});
  records.y = at::empty({count}, at::kLong);
  records.domain = at::zeros({count}, at::kLong);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t label = i % 3;
    records.y[i] = label;
    for (int64_t j = 0; j < 6; ++j) records.x[i][j] = stream.normal() + (j == label ? 3.0 : 0.0);
  }
  return records;
}

// A [privacy] section under which the named method can run.
inline std::string privacy_terms(const std::string& method) {
  const bool central = method == "dp-fedavg";
  return std::string("[privacy]\nepsilon = 8\ndelta = 1e-3\nadjacency = \"zero-out\"\n") +
         (central ? "unit = \"client\"\nobserver = \"clients\"\n" : "unproven = [\"model\"]\n");
}

// The options of [method] that the named method cannot do without.
inline std::string needed_options(const std::string& method) {
  return join(methods::find_method(method).example_options, "\n") + "\n";
}

// The step of [federation], for methods that do not find it by themselves.
inline std::string step_of(const std::string& method) {
  return method == "dp-head" ? "" : "lr = 0.1\n";
}

inline Setup small_setup(const std::string& toml) {
  auto data = std::make_shared<models::TaskData>();
  auto& dataset = data->dataset;
  dataset.name = "blobs";
  dataset.kind = data::Kind::kFeatures;
  dataset.class_names = {"a", "b", "c"};
  dataset.domain_names = {"only"};
  dataset.train = blobs(240, 1);
  dataset.test = blobs(90, 2);
  data->task = {{6}, 3};
  return Setup(config::parse_run_spec(toml + "[model]\nname = \"mlp\"\nhidden = [8]\n", "test.toml", {}),
               std::move(data));
}

// The same with other settings.
inline Setup changed(const Setup& setup, const std::function<void(config::RunSpec&)>& change) {
  config::RunSpec spec = setup.spec();
  change(spec);
  return setup.with(spec);
}

}  // namespace sotto::federation

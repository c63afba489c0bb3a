#include "models/feature_frame.h"

#include "base/error.h"
#include "io/numpy.h"
#include "io/safetensors.h"

#include <ATen/ATen.h>

#include <filesystem>

namespace sotto::models {
namespace {

constexpr const char* kRecord = "record";
constexpr const char* kOwn = "own";
constexpr double kLeastNorm = 1e-12;

// A .npy file, or the tensor `centre` of a safetensors file.
at::Tensor read_centre(const std::filesystem::path& file, int64_t width) {
  at::Tensor centre;
  if (file.extension() == ".npy") {
    centre = io::read_npy(file);
  } else if (file.extension() == ".safetensors") {
    centre = find_tensor(io::read_safetensors(file).tensors, "centre");
  } else {
    fail_user(
        "data.centre: '{}' is neither \"record\" nor \"own\" nor a .npy or .safetensors file with a public vector",
        file.string());
  }
  if (!centre.defined() || centre.dim() != 1 || centre.size(0) != width || !centre.is_floating_point()) {
    fail_user("data.centre: {} holds no vector of {} floats, which is the width of the features", file.string(), width);
  }
  centre = centre.to(at::kFloat);
  if (!at::isfinite(centre).all().item<bool>()) fail_user("data.centre: {} is not finite", file.string());
  return centre;
}

at::Tensor of_length_one(const at::Tensor& x) {
  return x / x.norm(2, {1}, true).clamp_min(kLeastNorm);
}

template <typename Change>
void change_both(data::Dataset& dataset, const Change& change) {
  for (data::Records* records : {&dataset.train, &dataset.test}) {
    if (records->size() > 0) records->x = change(records->x);
  }
}

}  // namespace

void place_features(data::Dataset& dataset, const data::DataOptions& options) {
  if (options.centre.empty() && !options.normalise) return;
  if (dataset.kind != data::Kind::kFeatures) {
    fail_user("data.{}: the records of '{}' are no features; name some with data.features, or leave it out",
              options.normalise ? "normalise" : "centre", dataset.name);
  }
  if (options.centre == kRecord) {
    change_both(dataset, [](const at::Tensor& x) { return x - x.mean({1}, true); });
  } else if (!options.centre.empty() && options.centre != kOwn) {
    const at::Tensor centre = read_centre(options.centre, dataset.train.x.size(1));
    change_both(dataset, [&](const at::Tensor& x) { return x - centre; });
  }
  if (options.normalise) change_both(dataset, of_length_one);
}

void centre_by_client(data::Dataset& dataset, const data::DataOptions& options,
                      const std::vector<data::Shard>& clients) {
  const at::Tensor train = dataset.train.x.clone();
  at::Tensor test = dataset.test.size() > 0 ? dataset.test.x.clone() : at::Tensor();
  for (const data::Shard& shard : clients) {
    if (shard.size() == 0) continue;
    const at::Tensor mean = dataset.train.x.index_select(0, shard.train).mean(0);
    const auto move = [&](at::Tensor moved, const at::Tensor& from, const at::Tensor& rows) {
      const at::Tensor around = from.index_select(0, rows) - mean;
      moved.index_copy_(0, rows, options.normalise ? of_length_one(around) : around);
    };
    move(train, dataset.train.x, shard.train);
    if (shard.validation.defined()) move(train, dataset.train.x, shard.validation);
    if (shard.test_in_train) {
      move(train, dataset.train.x, shard.test);
    } else if (test.defined()) {
      move(test, dataset.test.x, shard.test);
    }
  }
  dataset.train.x = train;
  if (test.defined()) dataset.test.x = test;
}

}  // namespace sotto::models

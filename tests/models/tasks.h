// Tasks and models as the tests of this folder need them.
#pragma once

#include "models/model.h"

#include <memory>
#include <string>
#include <string_view>

namespace sotto::models {

inline Task image_task(int64_t channels, int64_t size, int64_t classes = 10) {
  return {{channels, size, size}, classes};
}
inline Task token_task(int64_t length, int64_t classes = 4) {
  return {{length}, classes, true};
}

inline models::ModelOptions named(const std::string& name) {
  models::ModelOptions options;
  options.name = name;
  return options;
}

inline std::shared_ptr<Model> make(const models::ModelOptions& options, const Task& task, uint64_t seed = 1) {
  RandomStream init(seed, "test-init");
  return make_model(options, task, init);
}

// A ViT small enough for finite differences.
inline models::ModelOptions small_vit() {
  models::ModelOptions options = named("vit-tiny");
  options.width = 8;
  options.depth = 2;
  options.heads = 2;
  options.patch = 4;
  return options;
}

// The named model, at the size above if it is a ViT.
inline models::ModelOptions small(std::string_view name) {
  return name == "vit-tiny" ? small_vit() : named(std::string(name));
}

}  // namespace sotto::models

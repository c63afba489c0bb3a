#include "models/architectures/headed_model.h"

#include "base/error.h"

#include <ATen/ATen.h>

#include <unistd.h>

namespace sotto::models {

at::Tensor HeadedModel::classify(const at::Tensor& features) {
  return head_->forward(dropout_->forward(features));
}

void HeadedModel::add_head(const Blueprint& blueprint, int64_t feature_width, std::string name) {
  feature_width_ = feature_width;
  head_name_ = std::move(name);
  dropout_ = register_module("dropout", std::make_shared<Dropout>(blueprint.options.dropout, generator_));
  head_ = add<Linear>(*this, head_name_, feature_width, blueprint.task.classes, blueprint.init);
}

void require_memory_for(const Blueprint& blueprint, double parameters) {
  constexpr double kBytesPerParameter = 4 * sizeof(float);
  const double memory = static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGESIZE));
  if (parameters * kBytesPerParameter <= memory) return;
  fail_user(
      "model '{}' would have {:.3g} parameters, more than training has memory for here ({:.0f} GB): make it smaller",
      blueprint.options.name, parameters, memory / 1e9);
}

ImageShape image_shape(const Blueprint& blueprint, int64_t smallest) {
  const auto& shape = blueprint.task.record_shape;
  const auto& name = blueprint.options.name;
  if (shape.size() != 3)
    fail_user("model '{}' needs images, but this task's records are not images: use logistic or mlp", name);
  if (shape[1] < smallest || shape[2] < smallest)
    fail_user("model '{}' needs images of at least {}×{} pixels, but they are {}×{}: set data.image_size", name,
              smallest, smallest, shape[1], shape[2]);
  return {shape[0], shape[1], shape[2]};
}

ImageShape colour_image_shape(const Blueprint& blueprint, int64_t smallest) {
  const ImageShape shape = image_shape(blueprint, smallest);
  if (shape.channels != 1 && shape.channels != 3)
    fail_user("model '{}' needs grey or RGB images, but they have {} channels", blueprint.options.name, shape.channels);
  return shape;
}

at::Tensor as_colour(const at::Tensor& x) {
  return x.size(1) == 1 ? x.expand({-1, 3, -1, -1}) : x;
}

}  // namespace sotto::models

// What every model here shares: a linear classifier behind dropout, and checks on the task.
#pragma once

#include "models/catalogue.h"
#include "models/layers.h"

#include <memory>
#include <string>

namespace sotto::models {

class HeadedModel : public Model {
 public:
  at::Tensor classify(const at::Tensor& features) override;
  int64_t feature_width() const override { return feature_width_; }
  std::string head_name() const override { return head_name_; }

 protected:
  // Called last by the constructor of the model, so that the classifier is the last of its layers.
  void add_head(const Blueprint& blueprint, int64_t feature_width, std::string name = "head");

 private:
  int64_t feature_width_ = 0;
  std::string head_name_;
  std::shared_ptr<Dropout> dropout_;
  std::shared_ptr<Linear> head_;
};

// A UserError if this many parameters, their gradients and two copies of them do not fit into the machine's memory. For
// models whose size the config sets, before anything is allocated.
void require_memory_for(const Blueprint& blueprint, double parameters);

struct ImageShape {
  int64_t channels, height, width;
};

// The task's records as images of at least `smallest` pixels a side, or a UserError.
ImageShape image_shape(const Blueprint& blueprint, int64_t smallest);

// The same for models made for colour: one or three channels.
ImageShape colour_image_shape(const Blueprint& blueprint, int64_t smallest);

// Grey images as three equal channels; others as they are.
at::Tensor as_colour(const at::Tensor& x);

}  // namespace sotto::models

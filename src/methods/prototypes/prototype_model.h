// What a client of a prototype framework trains: an encoder into the space of the prototypes, and a head.
//
//   z = P f(x),  or f(P x) where f is an adapter on cached features;  logits = head(z)
//
// f is the [model] of the config: a frozen backbone with adapters, or an adapter on cached features. P maps to d
// dimensions: fixed, public and the same for everybody, or trained with the rest (then always after f).
#pragma once

#include "methods/run_settings.h"
#include "models/layers.h"
#include "models/model.h"
#include "models/options.h"

#include <memory>
#include <string>
#include <vector>

namespace sotto::methods {

// Linear layers with ReLU between them, dropout before the last.
class Head : public torch::nn::Module {
 public:
  Head(int64_t width, const std::vector<int64_t>& hidden, int64_t classes, double dropout, at::Generator init,
       std::shared_ptr<at::Generator> generator);
  at::Tensor forward(const at::Tensor& features);

 private:
  std::vector<std::shared_ptr<models::Linear>> layers_;
  std::shared_ptr<models::Dropout> dropout_;
};

// teacher ← β·teacher + (1 - β)·student.
void follow(Head& teacher, const Head& student, double beta);

struct PrototypeModelOptions {
  models::ModelOptions encoder;
  int64_t width = 512;  // d
  std::vector<int64_t> hidden = {512};
  bool trained_projection = false;
  bool prior = false;        // there is a prior of the classes, whose weight is trained
  int64_t first_column = 0;  // features given as several blocks side by side: which columns this encoder reads
  int64_t columns = 0;       // 0 = all

  bool operator==(const PrototypeModelOptions&) const = default;
};

class PrototypeModel : public models::Model {
 public:
  PrototypeModel(const PrototypeModelOptions& options, const models::Task& task, uint64_t seed);

  at::Tensor features(const at::Tensor& x) override { return finish(prepare(x)); }
  // features(x) in two parts: what no training changes, and the rest.
  at::Tensor prepare(const at::Tensor& x) const;
  at::Tensor finish(const at::Tensor& prepared);
  bool has_fixed_part() const { return encoder_is_fixed_ || (project_first_ && fixed_.defined()); }

  at::Tensor classify(const at::Tensor& features) override { return head_->forward(features); }
  int64_t feature_width() const override { return options_.width; }
  std::string head_name() const override { return "head"; }

  const PrototypeModelOptions& options() const { return options_; }
  Head& head() { return *head_; }
  // How much the prior of the classes counts, as a factor: 1 at the start.
  at::Tensor prior_scale() const { return log_scale_.exp(); }
  // A head of the same shape and values that is not trained.
  std::shared_ptr<Head> copy_of_head() const;

 private:
  PrototypeModelOptions options_;
  int64_t classes_;
  uint64_t seed_;
  std::shared_ptr<models::Model> encoder_;
  std::shared_ptr<models::Linear> projection_;  // if it is trained
  at::Tensor fixed_;                            // otherwise [given width, d], or undefined if they are the same
  bool project_first_ = false;
  bool encoder_is_fixed_ = false;  // it has no parameters but a head that is not used
  at::Tensor log_scale_;
  std::shared_ptr<Head> head_;
};

// d orthonormal columns of `rows` numbers (orthonormal rows if d is larger), scaled so that the length of a vector is
// kept on average. Depends on the seed and the shape alone.
at::Tensor public_projection(int64_t rows, int64_t d, uint64_t seed);

}  // namespace sotto::methods

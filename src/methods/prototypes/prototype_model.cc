#include "methods/prototypes/prototype_model.h"

#include "base/error.h"
#include "models/lora.h"

#include <ATen/ATen.h>

#include <fmt/format.h>

#include <cmath>

namespace sotto::methods {
namespace {

at::Tensor normal_matrix(int64_t rows, int64_t columns, RandomStream& stream) {
  return at::empty({rows, columns}).normal_(0, 1, stream.torch_generator());
}

models::Task seen_by(const models::Task& task, const PrototypeModelOptions& options) {
  models::Task seen = task;
  if (options.columns > 0) seen.record_shape = {options.columns};
  return seen;
}

}  // namespace

Head::Head(int64_t width, const std::vector<int64_t>& hidden, int64_t classes, double dropout, at::Generator init,
           std::shared_ptr<at::Generator> generator) {
  for (size_t i = 0; i < hidden.size(); ++i) {
    layers_.push_back(models::add<models::Linear>(*this, fmt::format("fc{}", i + 1), width, hidden[i], init));
    width = hidden[i];
  }
  dropout_ = register_module("dropout", std::make_shared<models::Dropout>(dropout, std::move(generator)));
  layers_.push_back(models::add<models::Linear>(*this, "out", width, classes, init));
}

at::Tensor Head::forward(const at::Tensor& features) {
  at::Tensor x = features;
  for (size_t i = 0; i + 1 < layers_.size(); ++i) x = at::relu(layers_[i]->forward(x));
  return layers_.back()->forward(dropout_->forward(x));
}

void follow(Head& teacher, const Head& student, double beta) {
  const at::NoGradGuard no_grad;
  const auto from = student.parameters();
  auto to = teacher.parameters();
  for (size_t i = 0; i < to.size(); ++i) to[i].mul_(beta).add_(from[i].detach(), 1 - beta);
}

at::Tensor public_projection(int64_t rows, int64_t d, uint64_t seed) {
  RandomStream stream(seed, "public-projection", static_cast<uint64_t>(rows));
  const int64_t long_side = std::max(rows, d), short_side = std::min(rows, d);
  const at::Tensor basis = std::get<0>(at::linalg_qr(normal_matrix(long_side, short_side, stream)));
  const at::Tensor map = rows >= d ? basis : basis.t();
  return (map * std::sqrt(static_cast<double>(std::max(rows, d)) / static_cast<double>(d))).contiguous();
}

PrototypeModel::PrototypeModel(const PrototypeModelOptions& options, const models::Task& task, uint64_t seed)
    : options_(options), classes_(task.classes), seed_(seed) {
  RandomStream stream(seed, "model-init");
  models::Task seen = seen_by(task, options);
  project_first_ = !options.trained_projection && options.encoder.name == "adapter" && seen.record_shape.size() == 1;
  if (project_first_ && seen.record_shape[0] != options.width) {
    fixed_ = public_projection(seen.record_shape[0], options.width, seed);
    seen.record_shape = {options.width};
  }
  encoder_ = register_module("encoder", models::make_model(options.encoder, seen, stream));
  bool has_parameters = false, has_paths = false;
  for (auto& parameter : encoder_->named_parameters()) {
    const bool is_of_head = parameter.key().starts_with(encoder_->head_name() + ".");
    if (is_of_head) parameter.value().set_requires_grad(false);
    has_parameters = has_parameters || !is_of_head;
    has_paths = has_paths || (!is_of_head && models::is_lora(parameter.key()));
  }
  if (options.encoder.lora.rank > 0 && !has_paths) {
    fail_user(
        "model.lora.targets: only the classifier of model '{}' is named, and prototypes do without it; name other "
        "layers, "
        "or leave model.lora out",
        options.encoder.name);
  }
  encoder_is_fixed_ = !project_first_ && !options.trained_projection && !has_parameters && encoder_->buffers().empty();
  const int64_t given = encoder_->feature_width();
  if (options.trained_projection) {
    projection_ = models::add<models::Linear>(*this, "projection", given, options.width, stream.torch_generator());
  } else if (given != options.width) {
    fixed_ = public_projection(given, options.width, seed);
  }
  head_ =
      register_module("head", std::make_shared<Head>(options.width, options.hidden, task.classes,
                                                     options.encoder.dropout, stream.torch_generator(), generator_));
  if (options.prior) log_scale_ = register_parameter("prior_scale", at::zeros({1}));
  *generator_ = stream.torch_generator();
}

at::Tensor PrototypeModel::prepare(const at::Tensor& x) const {
  const at::Tensor seen = options_.columns > 0 ? x.narrow(1, options_.first_column, options_.columns) : x;
  if (project_first_) return fixed_.defined() ? seen.mm(fixed_) : seen;
  if (!encoder_is_fixed_) return seen;
  const at::Tensor encoded = encoder_->features(seen);
  return fixed_.defined() ? encoded.mm(fixed_) : encoded;
}

at::Tensor PrototypeModel::finish(const at::Tensor& prepared) {
  if (encoder_is_fixed_) return prepared;
  const at::Tensor encoded = encoder_->features(prepared);
  if (projection_) return projection_->forward(encoded);
  return fixed_.defined() && !project_first_ ? encoded.mm(fixed_) : encoded;
}

std::shared_ptr<Head> PrototypeModel::copy_of_head() const {
  RandomStream unused(seed_, "unused");
  auto copy = std::make_shared<Head>(options_.width, options_.hidden, classes_, options_.encoder.dropout,
                                     unused.torch_generator(), std::make_shared<at::Generator>());
  const auto from = head_->parameters();
  auto to = copy->parameters();
  for (size_t i = 0; i < to.size(); ++i) {
    to[i].set_requires_grad(false);
    to[i].copy_(from[i].detach());
  }
  copy->eval();
  return copy;
}

}  // namespace sotto::methods

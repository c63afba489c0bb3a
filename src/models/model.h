// A model of the federation: features, then logits.
#pragma once

#include "base/named_tensors.h"
#include "base/random.h"
#include "models/options.h"

#include <torch/nn/module.h>

#include <memory>
#include <string>
#include <vector>

namespace sotto::models {

// What a model must fit: the shape of one record and the number of classes.
struct Task {
  std::vector<int64_t> record_shape;
  int64_t classes = 0;
  bool tokens = false;  // records are token ids (int64, 0 = padding), not numbers
};

// Images come as float32 in [-1, 1], whatever the model wants inside; features as float32, tokens as int64.
class Model : public torch::nn::Module {
 public:
  // x → feature vectors [B, feature_width()].
  virtual at::Tensor features(const at::Tensor& x) = 0;
  // Feature vectors → logits [B, classes].
  virtual at::Tensor classify(const at::Tensor& features) = 0;
  virtual int64_t feature_width() const = 0;
  // What the classifier's parameters begin with, without the dot: "head", "fc". All others are the backbone.
  virtual std::string head_name() const = 0;

  at::Tensor logits(const at::Tensor& x) { return classify(features(x)); }

  // Draws every random choice of a forward pass (dropout) from `generator` from now on; models never use libtorch's
  // global one.
  void set_generator(at::Generator generator) { *generator_ = std::move(generator); }

  // Trainable parameters in registration order. The tensors are the model's own: writing to them changes the model.
  // `shared` leaves the client, `personal` does not; a parameter is personal if its name begins with one of the
  // prefixes of ModelOptions::personal ("head." means the classifier, whatever the model calls it), and in neither list
  // if it is frozen.
  NamedTensors shared_parameters() const;
  NamedTensors personal_parameters() const;
  // BatchNorm's running statistics, if any.
  NamedTensors buffer_tensors() const;
  // Parameters and buffers: what is saved and loaded.
  NamedTensors state() const;

 protected:
  const std::shared_ptr<at::Generator> generator_ = std::make_shared<at::Generator>();

 private:
  friend std::shared_ptr<Model> make_model(const ModelOptions&, const Task&, RandomStream&, bool);
  NamedTensors trainable(bool personal) const;
  std::vector<std::string> personal_prefixes_;
};

// Builds the named model for the task, initialised from `init` alone, then loads options.weights if given. Unknown
// names and tasks the model cannot fit (an image too small, features given to a CNN) are UserErrors.
// `may_be_opaque`: an archive whose layers are not known is taken as it is. Only where no promise is made of records or
// clients: models/script/opaque.h.
std::shared_ptr<Model> make_model(const ModelOptions& options, const Task& task, RandomStream& init,
                                  bool may_be_opaque = false);

// Loads weights into a model: every backbone tensor must be there and fit. The classifier and adapters are taken where
// they fit and keep their values otherwise (another number of classes, a backbone saved without them). `where` names
// the weights in errors.
void load_weights(Model& model, const std::string& model_name, NamedTensors weights, const std::string& where);

// The names make_model knows, with one line each for people.
struct ModelInfo {
  std::string name;
  std::string what;
};
std::vector<ModelInfo> list_models();

// Whether the named model reads token ids; a UserError for an unknown name.
bool is_token_model(const std::string& name);

}  // namespace sotto::models

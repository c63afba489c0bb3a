// Layers with PyTorch's parameter names and default initialisation.
//
// Every parameterised layer is a Layer: its forward computes and then tells the thread's observer, if there is one,
// what went in and what came out. That is all that exact per-example gradients need, so they can be added without
// touching a model. Initial values come from the generator given, never from libtorch's global one.
#pragma once

#include <ATen/core/Generator.h>
#include <torch/nn/module.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace sotto::models {

class Layer;
class Conv2d;

// Max-pooling windows of kernel × kernel pixels, without padding.
struct Pooling {
  int64_t kernel, stride;
};

class LayerObserver {
 public:
  virtual ~LayerObserver() = default;
  // What the layer's caller gets: `output`, or a tensor of the same values with more of a graph behind it.
  virtual at::Tensor on_forward(Layer& layer, const at::Tensor& input, const at::Tensor& output) = 0;
  // Offered max_pool(relu(conv(input))) before it is computed. An undefined result declines: the convolution then runs
  // alone, as any other layer.
  virtual at::Tensor on_conv_block(Conv2d& conv, const at::Tensor& input, const Pooling& pooling);
};

// While it lives, `observer` sees every forward of this thread's layers. Observations nest: the innermost one is told.
class ObserveLayers {
 public:
  explicit ObserveLayers(LayerObserver& observer);
  ~ObserveLayers();
  ObserveLayers(const ObserveLayers&) = delete;
  ObserveLayers& operator=(const ObserveLayers&) = delete;

 private:
  LayerObserver* outer_;
};

class Layer : public torch::nn::Module {
 public:
  at::Tensor forward(const at::Tensor& input) {
    at::Tensor output = compute(input);
    if (observer_ != nullptr) output = observer_->on_forward(*this, input, output);
    return down_ == nullptr ? output : output + up_->forward(down_->forward(input));
  }

  // From now on callers get up(down(input)) on top of what the layer computes. Both are layers of their own: the
  // observer sees each by itself, and this one without them.
  void add_path(std::shared_ptr<Layer> down, std::shared_ptr<Layer> up) {
    down_ = std::move(down);
    up_ = std::move(up);
  }

  // This thread's observer, or null. Whoever fuses several layers into one operator must ask it first.
  static LayerObserver* observer() { return observer_; }

 protected:
  virtual at::Tensor compute(const at::Tensor& input) = 0;

 private:
  friend class ObserveLayers;
  static inline constinit thread_local LayerObserver* observer_ = nullptr;
  std::shared_ptr<Layer> down_, up_;
};

// y = x Wᵀ + b over the last dimension. weight [out, in], bias [out].
class Linear : public Layer {
 public:
  Linear(int64_t in, int64_t out, at::Generator init);
  at::Tensor weight, bias;

 protected:
  at::Tensor compute(const at::Tensor& input) override;
};

// Square kernels. weight [out, in / groups, kernel, kernel], bias [out] or undefined.
class Conv2d : public Layer {
 public:
  struct Options {
    int64_t in, out, kernel;
    int64_t stride = 1;
    int64_t padding = 0;
    int64_t groups = 1;
    bool bias = true;
  };
  Conv2d(const Options& options, at::Generator init);
  const Options& options() const { return options_; }
  at::Tensor weight, bias;

 protected:
  at::Tensor compute(const at::Tensor& input) override;

 private:
  Options options_;
};

// Batch statistics while training, running ones otherwise; a frozen layer (weight without gradient) always uses its
// running ones.
class BatchNorm2d : public Layer {
 public:
  explicit BatchNorm2d(int64_t channels, double eps = 1e-5, double momentum = 0.1);
  double eps() const { return eps_; }
  // Whether the next forward mixes the examples of a batch.
  bool uses_batch_statistics() const { return is_training() && weight.requires_grad(); }
  at::Tensor weight, bias, running_mean, running_var;

 protected:
  at::Tensor compute(const at::Tensor& input) override;

 private:
  double eps_, momentum_;
};

class GroupNorm : public Layer {
 public:
  static constexpr double kEps = 1e-5;
  GroupNorm(int64_t groups, int64_t channels);
  int64_t groups() const { return groups_; }
  at::Tensor weight, bias;

 protected:
  at::Tensor compute(const at::Tensor& input) override;

 private:
  int64_t groups_;
};

// Over the last dimension.
class LayerNorm : public Layer {
 public:
  LayerNorm(int64_t width, double eps);
  double eps() const { return eps_; }
  at::Tensor weight, bias;

 protected:
  at::Tensor compute(const at::Tensor& input) override;

 private:
  double eps_;
};

// int64 ids → rows of weight [count, width].
class Embedding : public Layer {
 public:
  Embedding(int64_t count, int64_t width, at::Generator init);
  at::Tensor weight;

 protected:
  at::Tensor compute(const at::Tensor& input) override;
};

// x [B, n, width] + weight [1, n, width]: learned positions.
class PositionEmbedding : public Layer {
 public:
  PositionEmbedding(int64_t count, int64_t width, at::Generator init);
  at::Tensor weight;

 protected:
  at::Tensor compute(const at::Tensor& input) override;
};

// Inverted dropout while training; the generator is shared with the model, which may replace it between passes.
class Dropout : public torch::nn::Module {
 public:
  Dropout(double probability, std::shared_ptr<at::Generator> generator);
  at::Tensor forward(const at::Tensor& input);
  double probability() const { return probability_; }

 private:
  double probability_;
  std::shared_ptr<at::Generator> generator_;
};

// max_pool(relu(conv(x))), in one operator where there is one.
at::Tensor conv_relu_max_pool(Conv2d& conv, const at::Tensor& x, const Pooling& pooling);

// softmax(q kᵀ/√d) v with `heads` heads; q, k, v [B, n, width]. `bias`, if defined, is added to the scores [B, heads,
// n, n].
at::Tensor attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, int64_t heads,
                  const at::Tensor& bias = {});

// Overwrites a parameter with N(0, stddev²).
void init_normal(at::Tensor& parameter, double stddev, at::Generator init);

// The submodule of `owner` that `path` ("encoder.layer") names; empty modules are made along the way.
torch::nn::Module& submodule(torch::nn::Module& owner, std::string_view path);

// Makes a layer and registers it under a dotted path, so that nested parameter names need no nested classes.
template <typename L, typename... Args>
std::shared_ptr<L> add(torch::nn::Module& owner, std::string_view path, Args&&... args) {
  const size_t dot = path.rfind('.');
  torch::nn::Module& parent = dot == path.npos ? owner : submodule(owner, path.substr(0, dot));
  const std::string name(dot == path.npos ? path : path.substr(dot + 1));
  return parent.register_module(name, std::make_shared<L>(std::forward<Args>(args)...));
}

}  // namespace sotto::models

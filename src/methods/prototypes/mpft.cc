#include "methods/prototypes/entries.h"
#include "methods/prototypes/losses.h"
#include "models/layers.h"

#include <ATen/ATen.h>
#include <torch/optim/adam.h>

#include <iterator>

namespace sotto::methods {
namespace {

constexpr int64_t kBottleneck = 64;
constexpr const char* kTeacher[] = {"teacher.down.weight", "teacher.down.bias",  "teacher.up.weight",
                                    "teacher.up.bias",     "teacher.out.weight", "teacher.out.bias"};

// out(x + up(ReLU(down x)))
at::Tensor teach(const std::vector<at::Tensor>& w, const at::Tensor& x) {
  const at::Tensor adapted = x + at::linear(at::relu(at::linear(x, w[0], w[1])), w[2], w[3]);
  return at::linear(adapted, w[4], w[5]);
}

class Mpft : public Framework {
 public:
  explicit Mpft(settings::Section& section)
      : temperature_(section.number("distill_temperature", 4.0, settings::kPositive)),
        weight_(section.number("distill_weight", 0.3, settings::kNonNegative)),
        epochs_(section.integer("server_epochs", 20, settings::at_least(1))),
        lr_(section.number("server_lr", 0.001, settings::kPositive)) {}

  LocalPrototypes local() const override { return LocalPrototypes::kKMeans; }
  bool uses_source() const override { return true; }

  at::Tensor loss(const LocalBatch& batch, const NamedTensors& broadcast) const override {
    const at::Tensor fit = at::cross_entropy_loss(batch.logits, batch.labels);
    std::vector<at::Tensor> teacher;
    for (const char* name : kTeacher) teacher.push_back(find_tensor(broadcast, name));
    if (!teacher.front().defined()) return fit;
    return fit + weight_ * temperature_ * temperature_ *
                     distillation(teach(teacher, batch.source), batch.logits, temperature_);
  }

  NamedTensors generate(const std::vector<PrototypeSet>& clients, const GeneratorContext& context) const override {
    NamedTensors made;
    const PrototypeSet all = concatenate(clients);
    if (all.empty()) return made;
    const int64_t width = context.shape.width;
    RandomStream stream(context.seed, "prototype-adapter");
    at::Generator init = stream.torch_generator();
    models::Linear down(width, kBottleneck, init), up(kBottleneck, width, init),
        out(width, context.shape.classes, init);
    {
      const at::NoGradGuard no_grad;
      up.weight.zero_();
      up.bias.zero_();
    }
    std::vector<at::Tensor> weights = {down.weight, down.bias, up.weight, up.bias, out.weight, out.bias};
    torch::optim::Adam optimizer(weights, torch::optim::AdamOptions(lr_));
    for (int64_t epoch = 0; epoch < epochs_; ++epoch) {
      optimizer.zero_grad();
      at::cross_entropy_loss(teach(weights, all.values), all.classes).backward();
      optimizer.step();
    }
    for (size_t i = 0; i < weights.size(); ++i) made.push_back({kTeacher[i], weights[i].detach().clone()});
    append(made, kGlobal, plain_means(clients, context));
    return made;
  }

  BroadcastShape generated(const PrototypeShape& shape) const override {
    BroadcastShape shapes = shape_of_set(kGlobal, shape);
    const std::vector<int64_t> sizes[] = {{kBottleneck, shape.width},   {kBottleneck},
                                          {shape.width, kBottleneck},   {shape.width},
                                          {shape.classes, shape.width}, {shape.classes}};
    for (size_t i = 0; i < std::size(kTeacher); ++i) shapes.push_back({.name = kTeacher[i], .sizes = sizes[i]});
    return shapes;
  }

 private:
  double temperature_, weight_;
  int64_t epochs_;
  double lr_;
};

}  // namespace

std::unique_ptr<Framework> make_mpft(settings::Section& section) {
  return std::make_unique<Mpft>(section);
}

MethodEntry mpft() {
  return prototype_method("mpft", "the server trains an adapter and a head on prototypes; clients distil from it",
                          "Zhang et al., CVPR 2025", make_mpft);
}

}  // namespace sotto::methods

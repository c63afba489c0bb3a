#include "methods/parts/averaging.h"

#include "base/error.h"
#include "methods/parts/local_trainer.h"

#include <ATen/ATen.h>

namespace sotto::methods {
namespace {

constexpr double kLeastNumber = 1e-24;
constexpr double kMostNumber = 1e24;

enum class Uploads { kModels, kUpdates };

class AveragingServer : public ServerMethod {
 public:
  AveragingServer(NamedTensors start, Uploads uploads) : uploads_(uploads), weights_(start.size()) {
    current_.values = std::move(start);
    sum_ = clone(current_.values);
    scale(sum_, 0.0);
  }

  Broadcast open() override { return current_; }

  void accept(const privacy::Upload& upload) override {
    const at::Tensor declared = find_tensor(upload.values(), kRecordsName);
    const double weight = declared.defined() ? declared.item<double>() : 1.0;
    for (size_t i = 0; i < sum_.size(); ++i) {
      const at::Tensor uploaded = find_tensor(upload.values(), sum_[i].name);
      if (!uploaded.defined()) continue;
      SOTTO_INVARIANT(uploaded.sizes() == sum_[i].value.sizes());
      sum_[i].value.add_(uploaded, weight);
      weights_[i] += weight;
    }
  }

  Broadcast aggregate(const RoundContext& context) override {
    for (size_t i = 0; i < sum_.size(); ++i) {
      at::Tensor& sum = sum_[i].value;
      if (weights_[i] > 0) {
        sum.mul_(1.0 / weights_[i]);
        if (uploads_ == Uploads::kUpdates) sum.add_(current_.values[i].value);
        std::swap(current_.values[i].value, sum);
      }
      sum.zero_();
      weights_[i] = 0;
    }
    current_.round = context.round();
    return current_;
  }

  void restore(const Broadcast& last, const NamedTensors&) override {
    copy_values(current_.values, last.values);
    current_.round = last.round;
  }

 private:
  Uploads uploads_;
  Broadcast current_;
  NamedTensors sum_;
  std::vector<double> weights_;  // of each tensor of the sum
};

}  // namespace

std::unique_ptr<ServerMethod> make_averaging_server_from(NamedTensors start) {
  return std::make_unique<AveragingServer>(std::move(start), Uploads::kModels);
}

std::unique_ptr<ServerMethod> make_updating_server_from(NamedTensors start) {
  return std::make_unique<AveragingServer>(std::move(start), Uploads::kUpdates);
}

std::unique_ptr<ServerMethod> make_averaging_server(const PublicContext& context) {
  LocalTrainer trainer(context);
  return make_averaging_server_from(clone(trainer.shared()));
}

privacy::TensorShape number_shape(const std::string& name) {
  return {.name = name, .dtype = at::kDouble, .least = kLeastNumber, .most = kMostNumber};
}

privacy::TensorShape weight_shape() {
  return number_shape(kRecordsName);
}

NamedTensor declared_weight(double weight) {
  return {kRecordsName, at::scalar_tensor(weight, at::kDouble)};
}

privacy::UploadShape averaging_shape(const NamedTensors& start) {
  privacy::UploadShape shape{.tensors = privacy::shapes_of(start)};
  shape.tensors.push_back(weight_shape());
  return shape;
}

privacy::UploadShape model_shape(const PublicContext& context) {
  LocalTrainer trainer(context);
  return averaging_shape(trainer.shared());
}

}  // namespace sotto::methods

#include "methods/parts/iterates.h"

#include "methods/parts/averaging.h"

#include <ATen/ATen.h>

#include <cmath>
#include <string>

namespace sotto::methods {
namespace {

class IterateServer : public ServerMethod {
 public:
  IterateServer(NamedTensors start, const IterateOptions& options)
      : options_(options),
        averaged_(clone(start)),
        iterate_(clone(start)),
        velocity_(clone(start)),
        mean_(make_averaging_server_from(std::move(start))) {
    scale(velocity_, 0.0);
  }

  Broadcast open() override { return broadcast(0); }

  void accept(const privacy::Upload& upload) override {
    mean_->accept(upload);
    heard_ = true;
  }

  Broadcast aggregate(const RoundContext& context) override {
    if (heard_) move_by(mean_->aggregate(context).values);
    heard_ = false;
    return broadcast(context.round());
  }

  NamedTensors state() const override {
    NamedTensors values = prefixed("velocity.", velocity_);
    values.push_back({"steps", at::scalar_tensor(steps_, at::kDouble)});
    values.push_back({"weight", at::scalar_tensor(weight_, at::kDouble)});
    return values;
  }

  void restore(const Broadcast& last, const NamedTensors& state) override {
    for (size_t i = 0; i < iterate_.size(); ++i) {
      averaged_[i].value.copy_(find_tensor(last.values, averaged_[i].name));
      iterate_[i].value.copy_(find_tensor(last.values, kIteratePrefix + iterate_[i].name));
      velocity_[i].value.copy_(find_tensor(state, "velocity." + velocity_[i].name));
    }
    steps_ = find_tensor(state, "steps").item<double>();
    weight_ = find_tensor(state, "weight").item<double>();
  }

 private:
  static NamedTensors prefixed(const std::string& prefix, const NamedTensors& tensors) {
    NamedTensors values = clone(tensors);
    for (NamedTensor& tensor : values) tensor.name = prefix + tensor.name;
    return values;
  }

  Broadcast broadcast(int64_t round) const {
    Broadcast sent{.round = round, .values = clone(averaged_)};
    for (NamedTensor& tensor : prefixed(kIteratePrefix, iterate_)) sent.values.push_back(std::move(tensor));
    return sent;
  }

  void move_by(const NamedTensors& mean) {
    steps_ += 1;
    const double own = options_.averaging > 0 ? std::pow(steps_, options_.averaging) : 1;
    weight_ = options_.averaging > 0 ? weight_ + own : 1;
    for (size_t i = 0; i < iterate_.size(); ++i) {
      at::Tensor &iterate = iterate_[i].value, &velocity = velocity_[i].value;
      velocity.mul_(options_.momentum).add_(find_tensor(mean, iterate_[i].name) - iterate);
      iterate.add_(velocity);
      averaged_[i].value.lerp_(iterate, own / weight_);
    }
  }

  IterateOptions options_;
  NamedTensors averaged_, iterate_, velocity_;
  std::unique_ptr<ServerMethod> mean_;  // of a round's models
  double steps_ = 0, weight_ = 0;
  bool heard_ = false;
};

}  // namespace

std::unique_ptr<ServerMethod> make_iterate_server(NamedTensors start, const IterateOptions& options) {
  return std::make_unique<IterateServer>(std::move(start), options);
}

}  // namespace sotto::methods

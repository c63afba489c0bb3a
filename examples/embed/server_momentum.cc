#include "methods.h"

#include <memory>
#include <utility>

namespace {

double read_beta(sotto::Settings& settings) {
  return settings.number("beta", 0.5, 0.0, 1.0);
}

sotto::Tensors clone(const sotto::Tensors& tensors) {
  sotto::Tensors copies;
  for (const auto& [name, value] : tensors) copies.emplace_back(name, value.clone());
  return copies;
}

class MomentumServer : public sotto::Server {
 public:
  MomentumServer(std::unique_ptr<sotto::Server> average, double beta)
      : average_(std::move(average)), beta_(beta), current_(average_->open()) {
    current_.values = clone(current_.values);
    velocity_ = clone(current_.values);
    for (auto& [name, value] : velocity_) value.zero_();
  }

  sotto::Broadcast open() override { return current_; }

  void accept(const sotto::Upload& upload) override { average_->accept(upload); }

  sotto::Broadcast aggregate(int64_t round) override {
    const sotto::Broadcast average = average_->aggregate(round);
    for (size_t i = 0; i < velocity_.size(); ++i) {
      at::Tensor& velocity = velocity_[i].second;
      at::Tensor& model = current_.values[i].second;
      velocity.mul_(beta_).add_(average.values[i].second).sub_(model);
      model.add_(velocity);
    }
    current_.round = round;
    average_->restore(current_, {});
    return current_;
  }

  sotto::Tensors state() const override { return velocity_; }

  void restore(const sotto::Broadcast& last, const sotto::Tensors& state) override {
    current_ = {last.round, clone(last.values)};
    if (!state.empty()) velocity_ = clone(state);
    average_->restore(last, {});
  }

 private:
  std::unique_ptr<sotto::Server> average_;
  const double beta_;
  sotto::Broadcast current_;
  sotto::Tensors velocity_;
};

}  // namespace

sotto::Method server_momentum() {
  return {.name = "server-momentum",
          .what = "FedAvg with momentum at the server; not private",
          .citation = "Hsu et al., 2019",
          .based_on = "fedavg",
          .read_options = read_beta,
          .make_server = [](const sotto::PublicContext& context) -> std::unique_ptr<sotto::Server> {
            return std::make_unique<MomentumServer>(sotto::averaging_server(context), context.options<double>());
          }};
}

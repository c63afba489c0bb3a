#include "methods/averaging.h"

#include "base/error.h"
#include "methods/local_trainer.h"

#include <ATen/ATen.h>

namespace sotto::methods {
namespace {

class AveragingServer : public ServerMethod {
 public:
  explicit AveragingServer(NamedTensors start) {
    current_.values = std::move(start);
    sum_ = clone(current_.values);
    scale(sum_, 0.0);
  }

  Broadcast open() override { return current_; }

  void accept(const privacy::Upload& upload) override {
    const at::Tensor weight = find_tensor(upload.values(), kRecordsName);
    const double records = weight.defined() ? weight.item<double>() : 1.0;
    for (auto& [name, value] : sum_) {
      const at::Tensor uploaded = find_tensor(upload.values(), name);
      SOTTO_INVARIANT(uploaded.defined() && uploaded.sizes() == value.sizes());
      value.add_(uploaded, records);
    }
    total_records_ += records;
  }

  Broadcast aggregate(const RoundContext& context) override {
    if (total_records_ > 0) {
      scale(sum_, 1.0 / total_records_);
      std::swap(current_.values, sum_);
      scale(sum_, 0.0);
      total_records_ = 0;
    }
    current_.round = context.round();
    return current_;
  }

  void restore(const Broadcast& last, const NamedTensors&) override {
    copy_values(current_.values, last.values);
    current_.round = last.round;
  }

 private:
  Broadcast current_;
  NamedTensors sum_;
  double total_records_ = 0;
};

}  // namespace

std::unique_ptr<ServerMethod> make_averaging_server_from(NamedTensors start) {
  return std::make_unique<AveragingServer>(std::move(start));
}

std::unique_ptr<ServerMethod> make_averaging_server(const MethodContext& context) {
  LocalTrainer trainer(context);
  return make_averaging_server_from(clone(trainer.shared()));
}

}  // namespace sotto::methods

#include "methods/averaging.h"

#include "base/error.h"
#include "methods/local_trainer.h"

#include <ATen/ATen.h>

namespace sotto::methods {
namespace {

class AveragingServer : public ServerMethod {
 public:
  explicit AveragingServer(const MethodContext& context) {
    LocalTrainer trainer(context);
    current_.values = clone(trainer.shared());
    sum_ = clone(current_.values);
    scale(sum_, 0.0);
  }

  Broadcast open() override { return current_; }

  void accept(const privacy::Upload& upload) override {
    const double records = find_tensor(upload.values(), kRecordsName).item<double>();
    for (auto& [name, value] : sum_) {
      const at::Tensor uploaded = find_tensor(upload.values(), name);
      SOTTO_INVARIANT(uploaded.defined() && uploaded.sizes() == value.sizes());
      value.add_(uploaded, records);
    }
    total_records_ += records;
  }

  Broadcast aggregate(int64_t round) override {
    if (total_records_ > 0) {
      scale(sum_, 1.0 / total_records_);
      std::swap(current_.values, sum_);
      scale(sum_, 0.0);
      total_records_ = 0;
    }
    current_.round = round;
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

std::unique_ptr<ServerMethod> make_averaging_server(const MethodContext& context) {
  return std::make_unique<AveragingServer>(context);
}

}  // namespace sotto::methods

// A model that a run has trained, ready to be used.
#pragma once

#include "federation/setup.h"
#include "methods/method.h"

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

namespace sotto::artifacts {

class TrainedModel {
 public:
  // The model of `client`, or the global one, as of the run's last checkpoint. A client out of range, a global model
  // that the method does not have, and a run without a checkpoint are UserErrors.
  TrainedModel(const std::filesystem::path& run_folder, std::optional<int64_t> client);

  // Logits for a batch as data::gather gives it.
  at::Tensor predict(const at::Tensor& x) const { return method_->predict(x); }
  // Its feature vectors, if it has them.
  at::Tensor features(const at::Tensor& x) const { return method_->features(x); }
  NamedTensors weights() const { return method_->selected_weights(); }
  const federation::Setup& setup() const { return setup_; }
  int64_t round() const { return round_; }
  // Why this model must not leave its client: it was fitted to the client's records without noise. "" of any other.
  std::string why_not_private() const;

 private:
  TrainedModel(const std::filesystem::path& run_folder, const config::RunSpec& spec, std::optional<int64_t> client);

  federation::Setup setup_;
  std::unique_ptr<methods::ClientMethod> method_;
  std::optional<int64_t> client_;
  int64_t round_ = 0;
};

}  // namespace sotto::artifacts

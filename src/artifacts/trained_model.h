// A model that a run or a federation has trained, ready to be used.
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
  // What a broadcast and the personal state of `client` come to after `round`; `name` is what it is called. The global
  // model if there is no client.
  TrainedModel(federation::Setup setup, const methods::Broadcast& broadcast, const privacy::PrivateState& state,
               std::optional<int64_t> client, std::string name, int64_t round);

  // Logits for a batch as data::gather gives it.
  at::Tensor predict(const at::Tensor& x) const { return method_->predict(x); }
  // Its feature vectors, if it has them.
  at::Tensor features(const at::Tensor& x) const { return method_->features(x); }
  // Under the model's own names: low-rank paths are part of the weights beside which they lie.
  NamedTensors weights() const;
  const federation::Setup& setup() const { return setup_; }
  int64_t round() const { return round_; }
  // Whose model it is; nothing of the global one.
  std::optional<int64_t> client() const { return client_; }
  // Why this model must not leave its owner: it was fitted to the owner's records without noise. "" of any other.
  std::string why_not_private() const;

 private:
  TrainedModel(const std::filesystem::path& run_folder, const config::RunSpec& spec, std::optional<int64_t> client);

  federation::Setup setup_;
  std::unique_ptr<methods::ClientMethod> method_;
  std::optional<int64_t> client_;
  std::string name_;
  int64_t round_ = 0;
};

}  // namespace sotto::artifacts

// What an attacker has: a run's config, its last models, and its recorded uploads.
//
// Records are used only to score attacks: which ones were trained on, and what they look like.
#pragma once

#include "artifacts/run_directory.h"
#include "data/dataset.h"
#include "federation/setup.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>

namespace sotto::attacks {

class Target {
 public:
  // A run without a checkpoint is a UserError.
  explicit Target(const std::filesystem::path& run_folder);

  const federation::Setup& setup() const { return *setup_; }
  const std::filesystem::path& folder() const { return folder_; }

  // What a client sent in a round; a UserError that says how to record it if it was not.
  NamedTensors upload(int64_t round, int64_t client) const;
  // The last round of which a client's upload is recorded; 0 if there is none.
  int64_t last_upload(int64_t client) const;

  // What the server sent last.
  methods::Broadcast last_broadcast() const;

  // Parameters and buffers of the last global model.
  NamedTensors weights() const;

  // Logits of the last model of a client, or of the global one.
  at::Tensor logits(const data::Records& records, std::optional<int64_t> client) const;

 private:
  std::filesystem::path folder_;
  std::shared_ptr<const federation::Setup> setup_;
};

// The same federation without privacy: the same method in the clear where it can be run so, otherwise FedAvg with the
// same data, model and training. A run that is not private is its own.
federation::Setup without_privacy(const federation::Setup& setup);

// What a federation has come to after a round.
struct Rerun {
  methods::Broadcast broadcast = {};
  privacy::PrivateState state = {};  // of the client
  NamedTensors upload = {};          // that the client sent in the round; empty if it sent none
};
// Runs it once more up to that round. With replayed noise, or none, it is the run itself.
Rerun rerun(const federation::Setup& setup, int64_t client, int64_t round, int threads);

// The model that such a federation ends with, of a client or the global one, ready to predict.
std::unique_ptr<methods::ClientMethod> model_after_running(const federation::Setup& setup,
                                                           std::optional<int64_t> client, int threads);

// Logits of all records, in batches.
at::Tensor predict_all(methods::ClientMethod& method, const data::Records& records);

// All records as a model sees them, in one batch.
at::Tensor inputs_of(const data::Records& records);

// Records of known membership, as many of each kind.
struct Membership {
  data::Records records;  // members first
  int64_t members = 0;
};

// Members were trained on by the client (or by any, without one); the others are its held-out records (or anybody's),
// which nobody trained on. Both are of one mixture of classes and domains: records of other clients would stand out by
// what they show, not by who trained on them. At most `limit` of each.
Membership members_and_others(const federation::Setup& setup, std::optional<int64_t> client, int64_t limit,
                              uint64_t seed);

}  // namespace sotto::attacks

// What a method is: what a client does with a broadcast, what the server does with the uploads.
//
// A new method is one small file that defines a MethodEntry, and one line in catalogue.cc.
#pragma once

#include "config/run_spec.h"
#include "config/section.h"
#include "data/partition.h"
#include "models/task_data.h"
#include "privacy/ledger.h"
#include "privacy/release.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace sotto::methods {

// What the server sends to every client of a round. Public by definition: it is made of releases.
struct Broadcast {
  int64_t round = 0;
  NamedTensors values;
};

// Where a client's step stands in the run.
struct StepContext {
  uint64_t seed;
  privacy::ReleaseContext release;

  RandomStream stream(std::string_view purpose) const {
    return RandomStream(seed, purpose, static_cast<uint64_t>(release.round), static_cast<uint64_t>(release.client));
  }
};

// How local training went. For the experimenter's eyes in a simulation; never part of a message.
struct LocalReport {
  double loss = 0.0;    // mean over the records seen
  int64_t samples = 0;  // records seen, with repetition
  bool diverged = false;
};

struct StepResult {
  std::optional<privacy::Upload> upload;  // absent: the client sends nothing this round
  LocalReport report;
};

// The client side. One object serves many clients in turn on one thread: it owns a model and buffers that are reused,
// and keeps nothing of a client between calls but what it puts into that client's PrivateState.
class ClientMethod {
 public:
  virtual ~ClientMethod() = default;

  // One round of work for the client that holds `shard`. A diverged client (non-finite loss or weights) uploads nothing
  // and its state stays as it was.
  virtual StepResult step(const Broadcast& broadcast, const data::Shard& shard, privacy::PrivateState& state,
                          const StepContext& context) = 0;

  // Makes predict() answer with the model of the client whose state this is, or with the global model if it is empty.
  virtual void select(const Broadcast& broadcast, const privacy::PrivateState& state) = 0;

  // Class logits [B, classes] for a batch as data::gather gives it.
  virtual at::Tensor predict(const at::Tensor& x) = 0;

  // The selected model's parameters and buffers, for `export`.
  virtual NamedTensors selected_weights() const = 0;
};

// The server side. Uploads stream through it in cohort order; it keeps O(model), not O(clients).
class ServerMethod {
 public:
  virtual ~ServerMethod() = default;
  virtual Broadcast open() = 0;
  virtual void accept(const privacy::Upload& upload) = 0;
  // The next broadcast; the previous one again if nothing was accepted.
  virtual Broadcast aggregate(int64_t round) = 0;

  // What must survive a restart besides the last broadcast.
  virtual NamedTensors state() const { return {}; }
  virtual void restore(const Broadcast& last, const NamedTensors& state) = 0;
};

// One kind of release a method makes.
struct PlannedRelease {
  std::string what;
  std::string observer;
  std::string mechanism;
  std::string why_unproven;  // empty if a finite ε can be proven
  std::string how_often;     // for people: "once per participation"

  bool covers(const privacy::Event& event) const {
    return what == event.what && observer == event.observer && mechanism == event.mechanism &&
           why_unproven == event.why_unproven;
  }
};
using ReleasePlan = std::vector<PlannedRelease>;

struct MethodContext {
  const config::RunSpec& spec;
  const models::TaskData& data;
};

struct MethodEntry {
  std::string name;
  std::string what;      // one line for people
  std::string citation;  // "" for the project's own
  std::function<void(config::Section&)> read_options;
  std::function<ReleasePlan(const config::RunSpec&)> plan;
  // True if clients end up with models of their own; false if there is only the global one.
  std::function<bool(const config::RunSpec&)> personal;
  // True if there is a global model that can be evaluated without any client's state.
  std::function<bool(const config::RunSpec&)> global;
  std::function<std::unique_ptr<ClientMethod>(const MethodContext&)> make_client;
  std::function<std::unique_ptr<ServerMethod>(const MethodContext&)> make_server;
};

}  // namespace sotto::methods

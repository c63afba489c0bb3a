// What a method is: what a client does with a broadcast, what the server does with the uploads.
//
// A new method is one small file that defines a MethodEntry, and one line in catalogue.cc.
#pragma once

#include "data/partition.h"
#include "methods/context.h"
#include "privacy/channel.h"
#include "privacy/wire.h"
#include "settings/section.h"

#include <algorithm>
#include <any>
#include <functional>
#include <map>
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

// How local training went. For the experimenter's eyes in a simulation; never part of a message.
struct LocalReport {
  double loss = 0.0;    // mean over the records seen
  int64_t samples = 0;  // records seen, with repetition
  bool diverged = false;
  std::optional<double> noise_norm = 0.0;       // of the noise in the upload, expected; absent: it has no closed form
  std::map<std::string, double> measures = {};  // what else the method has to say of this step, by name
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

  // The selected model's feature vectors [B, d] for such a batch; undefined if the method has no model of one kind.
  virtual at::Tensor features(const at::Tensor& x) = 0;

  // The selected model's parameters and buffers, for `export`.
  virtual NamedTensors selected_weights() const = 0;
};

// The server side. Uploads stream through it in cohort order; it keeps O(model), not O(clients).
class ServerMethod {
 public:
  virtual ~ServerMethod() = default;
  virtual Broadcast open() = 0;
  virtual void accept(const privacy::Upload& upload) = 0;
  // The next broadcast; the previous one again if nothing was accepted (unless noise is due all the same).
  virtual Broadcast aggregate(const RoundContext& context) = 0;

  // What must survive a restart besides the last broadcast.
  virtual NamedTensors state() const { return {}; }
  virtual void restore(const Broadcast& last, const NamedTensors& state) = 0;
};

using BroadcastShape = std::vector<privacy::TensorShape>;

// What a client will release over the run, each kind once.
using ReleasePlan = std::vector<privacy::Channel>;

struct MethodEntry {
  bool has(Variant variant) const { return std::find(variants.begin(), variants.end(), variant) != variants.end(); }
  // Whether clients end up with models that no noise hides their records in: such a model must not leave its client.
  bool fits_without_noise(const RunSettings& settings) const {
    return personal(settings) && !(personal_is_noisy && personal_is_noisy(settings));
  }

  std::string name;
  std::string what;                               // one line for people
  std::string citation;                           // "" for the project's own
  std::string family = {};                        // which methods it shares its parts with
  std::vector<privacy::Unit> units = {};          // what it can protect; none: it is not private
  std::vector<privacy::Observer> observers = {};  // against whom
  std::vector<Variant> variants = {Variant::kSound};
  // Its own keys of [method], as a type of its own: RunSettings::options_of gives them back.
  std::function<std::any(settings::Section&)> read_options;
  // key=value of [method] for keys without a default, so that it can be tried without thinking.
  std::vector<std::string> example_options = {};
  // What of the model stays with its client where model.personal does not say: beginnings of names, as there.
  std::vector<std::string> personal_parameters = {};
  bool uses_model = true;  // false: it trains something else than what [model] says, which is not looked at
  // Datasets that it learns from as public ones, if any: nothing of them is accounted for.
  std::function<std::vector<data::DataOptions>(const RunSettings&)> public_data = {};
  // What a client of which these facts are declared will release. Settings the method cannot keep its promise under are
  // UserErrors.
  std::function<ReleasePlan(const PublicContext&, const ClientFacts&)> plan;
  // True if clients end up with models of their own; false if there is only the global one.
  std::function<bool(const RunSettings&)> personal;
  // True if those models are made of broadcasts and noisy steps alone: showing one adds nothing to what the ledger counts.
  // Left out: they are not.
  std::function<bool(const RunSettings&)> personal_is_noisy = {};
  // True if there is a global model that can be evaluated without any client's state.
  std::function<bool(const RunSettings&)> global;
  std::function<std::unique_ptr<ClientMethod>(const ClientContext&)> make_client;
  std::function<std::unique_ptr<ServerMethod>(const PublicContext&)> make_server;
  // What a broadcast of a server that nobody trusts must look like, to the last size: a home does not look at a record
  // for any other, so that what becomes of a step depends on no record by way of the broadcast. From the shapes of what
  // the server opens with; left out: exactly these.
  std::function<BroadcastShape(const PublicContext&, BroadcastShape opening, const Broadcast&)> broadcast_shape = {};
  // What an upload in answer to this broadcast looks like: anything else is refused before the server sees it.
  std::function<privacy::UploadShape(const PublicContext&, const Broadcast&)> upload_shape;
};

}  // namespace sotto::methods

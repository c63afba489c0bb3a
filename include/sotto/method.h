// A method of one's own: what a client does with what the server sends, what the server does with what clients send.
//
// A method says what is different about it and keeps the rest of another one: its clients, its server, what they release.
// Once it is added, configs of this program name it like any other, and runs check that it releases what its plan says.
//
//   add_method({.name = "server-momentum", .what = "FedAvg with momentum at the server", .based_on = "fedavg",
//               .read_options = read_beta, .make_server = make_momentum_server});
#pragma once

#include "sotto/accounting.h"
#include "sotto/sotto.h"

#include <any>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace sotto {

// A method's own keys under [method]. Every read names its default and limits; a key that nobody reads is the user's mistake.
class SOTTO_API Settings {
 public:
  double number(const std::string& key, double otherwise, double least = std::numeric_limits<double>::lowest(),
                double most = std::numeric_limits<double>::max());
  int64_t integer(const std::string& key, int64_t otherwise, int64_t least = std::numeric_limits<int64_t>::min());
  bool flag(const std::string& key, bool otherwise);
  std::string word(const std::string& key, const std::string& otherwise, const std::vector<std::string>& choices);

 private:
  friend Bridge;
  explicit Settings(void* section) : section_(section) {}
  void* section_;
};

// What is publicly declared of one client.
struct ClientFacts {
  int64_t records = 0;
  int64_t participations = 0;  // over the whole run
  double epsilon = 0;          // its budget; 0 without [privacy]
};

// What everybody may know, the server included: settings and declared facts. No records.
class SOTTO_API PublicContext {
 public:
  // What read_options made of the settings.
  template <typename Options>
  const Options& options() const {
    return std::any_cast<const Options&>(own_options());
  }
  int64_t clients() const;
  int64_t clients_per_round() const;  // on average
  int64_t rounds() const;
  int64_t classes() const;
  // The shared parameters that a run starts from, the same for the server and every client.
  Tensors initial_model() const;
  // With how much Gaussian noise `releases` of this client stay within its budget together. An Error without [privacy].
  double noise_multiplier(const ClientFacts& client, int64_t releases) const;

 protected:
  explicit PublicContext(const void* inside) : inside_(inside) {}

 private:
  friend Bridge;
  const std::any& own_options() const;
  const void* inside_;
};

// One kind of release, described once: plans announce it, and clients release through it.
struct Channel {
  std::string what;  // as the ledger shows it: "update"
  Tensors like;      // names and shapes of what is released, by example; the same for all clients
  // Not empty: it is released as it is, and the ledger and every report say ε = ∞ with this reason. Otherwise it is
  // clipped and gets Gaussian noise.
  std::string in_the_clear = {};
  double bound = 0;             // ℓ2 norm, over all tensors together, that clipping enforces
  double noise_multiplier = 0;  // the noise's standard deviation over what one change can move
  // What is computed has a first dimension for the records: each record's part is clipped, then they are summed and
  // divided by `divisor`, a public number. A record's part must depend on that record alone.
  bool per_record = false;
  double divisor = 1;
  int64_t times = 1;  // how often a client makes it in the whole run
  // Numbers that travel with it and follow from declared facts alone, like {"records", client.records}.
  std::vector<std::pair<std::string, double>> declared = {};
};

struct Training {
  double loss = 0;  // mean over the records seen
  int64_t samples = 0;
  bool diverged = false;  // the model is as it was before
};

// One round of one client. The model is there as the broadcast, and what the client kept for itself, make it. All that is
// computed from records is private: it leaves through release() or not at all. Whether a client releases, and through
// which channel, must not depend on its records.
class SOTTO_API Step : public PublicContext {
 public:
  int64_t round() const;
  const ClientFacts& facts() const;
  const Tensors& broadcast() const;

  // Trainable shared parameters as one vector, which is the model's own memory.
  at::Tensor parameters() const;
  // The same by name, with floating-point buffers.
  Tensors model() const;
  // The client's records as the model sees them.
  std::pair<at::Tensor, at::Tensor> records() const;
  // Class logits [B, classes], with gradients.
  at::Tensor logits(const at::Tensor& x) const;

  // Local training as [federation] says. `extra` may add to the gradient of the shared parameters before every step.
  using GradientTerm = std::function<void(const at::Tensor& parameters, at::Tensor& gradient)>;
  Training train(const GradientTerm& extra = {});

  // Pays, then computes, then clips and adds noise; once per step. A client that cannot pay has computed nothing. After a
  // training that diverged, nothing is sent in the clear.
  void release(const Channel& channel, const std::function<Tensors()>& compute);

 private:
  friend Bridge;
  struct Inside;
  Step(const void* context, Inside& step) : PublicContext(context), step_(step) {}
  Inside& step_;
};

// What a client has sent. It cannot be made by a server.
class SOTTO_API Upload {
 public:
  const Tensors& values() const { return values_; }

 private:
  friend Bridge;
  Upload(const void* inside, Tensors values) : inside_(inside), values_(std::move(values)) {}
  const void* inside_;
  Tensors values_;
};

// What the server sends to every client of a round. Between machines all are like the one that open() gives, tensor by
// tensor, in kind and size: a home refuses others before it looks at a record.
struct Broadcast {
  int64_t round = 0;
  Tensors values;
};

// The server's side. Uploads stream through it in the order of the cohort.
class SOTTO_API Server {
 public:
  Server() = default;
  virtual ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  virtual Broadcast open() = 0;
  virtual void accept(const Upload& upload) = 0;
  // The next broadcast; the previous one again if nothing was accepted.
  virtual Broadcast aggregate(int64_t round) = 0;
  // What must survive a restart besides the last broadcast.
  virtual Tensors state() const;
  virtual void restore(const Broadcast& last, const Tensors& state) = 0;
};

// The mean of what clients sent, weighted by the number `records` where they declare one.
SOTTO_API std::unique_ptr<Server> averaging_server(const PublicContext& context);
// The same where clients send what is to be added to the model.
SOTTO_API std::unique_ptr<Server> updating_server(const PublicContext& context);

struct Method {
  std::string name;
  std::string what;  // one line for people
  std::string citation = {};
  std::string based_on = "fedavg";  // a method that it keeps everything of that is not said below
  // Its own keys, besides those of the method that it is based on.
  std::function<std::any(Settings&)> read_options = {};
  // One round of a client, and what a client will release over the whole run: both or neither.
  std::function<void(Step&)> step = {};
  std::function<std::vector<Channel>(const PublicContext&, const ClientFacts&)> plan = {};
  std::function<std::unique_ptr<Server>(const PublicContext&)> make_server = {};
};

// From here on configs may name it. A name that is taken or missing, or a method that it cannot be based on, is an Error.
SOTTO_API void add_method(Method method);

}  // namespace sotto

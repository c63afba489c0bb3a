#include "bench/swarm.h"

#include "base/files.h"
#include "base/interrupt.h"
#include "base/open_files.h"
#include "io/safetensors.h"
#include "privacy/event_json.h"
#include "privacy/wire.h"
#include "remote/channel_options.h"
#include "remote/federation.grpc.pb.h"

#include <ATen/ATen.h>

#include <fmt/format.h>
#include <grpcpp/alarm.h>
#include <grpcpp/grpcpp.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace sotto::bench {
namespace {

using grpc::ClientContext;
using grpc::Status;
using nlohmann::json;

constexpr int kDays = 1;
constexpr double kMadeUpValue = 0.01;
constexpr auto kLook = std::chrono::milliseconds(100);

// What the clients have in common.
struct Shared {
  explicit Shared(const federation::FederationPlan& agreed) : plan(agreed), upload(agreed) {}

  void fail(const std::string& reason) {
    const std::lock_guard lock(mutex);
    if (failed++ == 0) failure = reason;
    ++gone;
    changed.notify_all();
  }
  void count(int64_t Shared::*what) {
    const std::lock_guard lock(mutex);
    ++(this->*what);
    changed.notify_all();
  }

  const federation::FederationPlan& plan;
  const MadeUpUpload upload;
  std::mutex mutex;
  std::condition_variable changed;
  int64_t joined = 0;
  int64_t gone = 0;  // left or failed
  int64_t stored = 0;
  int64_t failed = 0;
  std::string failure;
};

std::string describe(const Status& status) {
  return fmt::format("code {}: {}", static_cast<int>(status.error_code()), status.error_message());
}

// One client: each answer of the server leads to the next question. One call at a time.
class VirtualClient {
 public:
  VirtualClient(Shared& shared, const std::string& address, const net::Identity& identity) : shared_(shared) {
    grpc::SslCredentialsOptions options;
    options.pem_root_certs = identity.authority_pem;
    options.pem_private_key = identity.key_pem;
    options.pem_cert_chain = identity.certificate_pem;
    grpc::ChannelArguments arguments;
    remote::set_keepalive(arguments);
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetMaxReceiveMessageSize(remote::kLargestReply);
    stub_ = v1::Federation::NewStub(grpc::CreateCustomChannel(address, grpc::SslCredentials(options), arguments));
  }

  void join() {
    v1::JoinRequest request;
    request.set_plan_hash(shared_.plan.hash());
    ask<v1::JoinReply>(&Async::Join, std::move(request), [this](const v1::JoinReply& reply) {
      client_ = reply.client();
      shared_.count(&Shared::joined);
      next();
    });
  }

  void hang_up() {
    const std::lock_guard lock(mutex_);
    if (context_) context_->TryCancel();
  }

 private:
  using Async = v1::Federation::StubInterface::async_interface;

  ClientContext* new_context() {
    const std::lock_guard lock(mutex_);
    context_.emplace();
    return &*context_;
  }

  // A question with one answer. A status that is none ends this client.
  template <typename Reply, typename Request>
  void ask(void (Async::*method)(ClientContext*, const Request*, Reply*, std::function<void(Status)>), Request request,
           std::function<void(const Reply&)> then) {
    const auto question = std::make_shared<Request>(std::move(request));
    const auto reply = std::make_shared<Reply>();
    (stub_->async()->*method)(new_context(), question.get(), reply.get(),
                              [this, question, reply, then = std::move(then)](const Status& status) {
                                if (status.ok()) {
                                  then(*reply);
                                } else {
                                  shared_.fail(describe(status));
                                }
                              });
  }

  void next() {
    v1::NextRequest request;
    request.set_plan_hash(shared_.plan.hash());
    ask<v1::NextReply>(&Async::Next, std::move(request), [this](const v1::NextReply& reply) {
      if (reply.kind() == v1::NextReply::NOTHING) return next();
      const bool is_over = reply.kind() == v1::NextReply::OVER;
      const int64_t round = reply.round();
      fetch(reply.digest(), reply.bytes(), [this, is_over, round] { is_over ? leave() : offer(round); });
    });
  }

  void leave() {
    ask<v1::LeaveReply>(&Async::Leave, v1::LeaveRequest(), [this](const auto&) { shared_.count(&Shared::gone); });
  }

  // Reads all there is and throws it away.
  class Fetcher : public grpc::ClientReadReactor<v1::Chunk> {
   public:
    Fetcher(VirtualClient& client, const std::string& digest, int64_t bytes, std::function<void()> then)
        : client_(client), bytes_(bytes), then_(std::move(then)) {
      request_.set_digest(digest);
      client_.stub_->async()->Fetch(client_.new_context(), &request_, this);
      StartRead(&chunk_);
      StartCall();
    }
    void OnReadDone(bool ok) override {
      if (!ok) return;
      bytes_ -= static_cast<int64_t>(chunk_.data().size());
      StartRead(&chunk_);
    }
    void OnDone(const Status& status) override {
      if (!status.ok()) {
        client_.shared_.fail(describe(status));
      } else if (bytes_ != 0) {
        client_.shared_.fail("a broadcast has another length than was announced");
      } else {
        then_();
      }
      delete this;
    }

   private:
    VirtualClient& client_;
    int64_t bytes_;
    std::function<void()> then_;
    v1::FetchRequest request_;
    v1::Chunk chunk_;
  };

  void fetch(const std::string& digest, int64_t bytes, std::function<void()> then) {
    new Fetcher(*this, digest, bytes, std::move(then));
  }

  void offer(int64_t round) {
    v1::OfferRequest request;
    request.set_round(round);
    request.set_key(shared_.upload.key(round, client_));
    request.set_digest(shared_.upload.digest());
    request.set_bytes(static_cast<int64_t>(shared_.upload.bytes().size()));
    request.set_releases(shared_.upload.releases(round, client_));
    ask<v1::OfferReply>(&Async::Offer, std::move(request), [this, round](const v1::OfferReply& reply) {
      if (reply.verdict() == v1::OfferReply::SEND) {
        new Sender(*this, round, reply.offset());
      } else {
        heed(reply, round);
      }
    });
  }

  class Sender : public grpc::ClientWriteReactor<v1::Chunk> {
   public:
    Sender(VirtualClient& client, int64_t round, int64_t offset) : client_(client), round_(round), offset_(offset) {
      chunk_.set_key(client_.shared_.upload.key(round, client_.client_));
      client_.stub_->async()->Submit(client_.new_context(), &reply_, this);
      write();
      StartCall();
    }
    void OnWriteDone(bool ok) override {
      chunk_.clear_key();
      if (ok) write();
    }
    void OnDone(const Status& status) override {
      if (status.ok()) {
        client_.heed(reply_, round_);
      } else {
        client_.shared_.fail(describe(status));
      }
      delete this;
    }

   private:
    void write() {
      const std::string& bytes = client_.shared_.upload.bytes();
      const auto begin = static_cast<size_t>(offset_);
      if (begin >= bytes.size()) return StartWritesDone();
      chunk_.set_data(bytes.data() + begin, std::min(remote::kChunkBytes, bytes.size() - begin));
      chunk_.set_offset(offset_);
      offset_ += static_cast<int64_t>(chunk_.data().size());
      StartWrite(&chunk_);
    }

    VirtualClient& client_;
    int64_t round_;
    int64_t offset_;
    v1::Chunk chunk_;
    v1::OfferReply reply_;
  };

  // What became of an upload.
  void heed(const v1::OfferReply& reply, int64_t round) {
    switch (reply.verdict()) {
      case v1::OfferReply::STORED:
        pauses_ = 0;
        shared_.count(&Shared::stored);
        return next();
      case v1::OfferReply::BUSY: {
        const auto pause = remote::busy_pause(pauses_++);
        alarm_.emplace();
        alarm_->Set(std::chrono::system_clock::now() + pause, [this, round](bool) { offer(round); });
        return;
      }
      default:
        shared_.fail(fmt::format("an upload was not taken: {}", reply.reason()));
    }
  }

  Shared& shared_;
  std::unique_ptr<v1::Federation::Stub> stub_;
  std::mutex mutex_;
  std::optional<ClientContext> context_;
  std::optional<grpc::Alarm> alarm_;
  int64_t client_ = 0;
  int pauses_ = 0;
};

std::string made_up_bytes(const federation::PublicSetup& setup, const methods::ReleasePlan& releases) {
  NamedTensors declared;
  for (const privacy::Channel& channel : releases) channel.append_declared(declared);
  const methods::Broadcast broadcast = setup.method().make_server(setup.context())->open();
  io::SafeTensors content;
  for (const privacy::TensorShape& shape : setup.method().upload_shape(setup.context(), broadcast).tensors) {
    const at::Tensor known = find_tensor(declared, shape.name);
    content.tensors.push_back({shape.name, known.defined() ? known : at::full(shape.sizes, kMadeUpValue, shape.dtype)});
  }
  content.metadata = {{"content", "release"}};
  return io::safetensors_bytes(content);
}

}  // namespace

net::Identity made_up_identity(const net::KeyPair& authority, const std::string& name) {
  const net::Request request = net::make_request(name);
  return {.key_pem = request.key_pem,
          .certificate_pem = net::issue_client(authority, request.csr_pem, name, kDays),
          .authority_pem = authority.certificate_pem};
}

MadeUpUpload::MadeUpUpload(const federation::FederationPlan& plan)
    : plan_(plan),
      releases_(plan.setup().plan_for(plan.setup().facts_of(0, plan.setup().facts().least_records))),
      bytes_(made_up_bytes(plan.setup(), releases_)),
      digest_(sha256(bytes_)) {}

std::string MadeUpUpload::key(int64_t round, int64_t client) const {
  return plan_.upload_key(client, round);
}

std::string MadeUpUpload::releases(int64_t round, int64_t client) const {
  json rows = json::array();
  for (const privacy::Channel& channel : releases_) {
    privacy::Event event = channel.terms();
    event.round = round;
    event.client = client;
    event.generator = settings::word(plan_.setup().spec().privacy->generator);
    rows.push_back(privacy::to_json(event));
  }
  return rows.dump();
}

struct Swarm::Parts {
  explicit Parts(const federation::FederationPlan& plan) : shared(plan) {}

  Shared shared;
  std::vector<std::unique_ptr<VirtualClient>> clients;
  size_t begun = 0;
};

Swarm::Swarm(const std::string& address, const net::KeyPair& authority, const federation::FederationPlan& plan,
             int64_t clients)
    : parts_(std::make_unique<Parts>(plan)) {
  raise_open_files_limit();
  for (int64_t i = 0; i < clients; ++i) {
    parts_->clients.push_back(std::make_unique<VirtualClient>(
        parts_->shared, address, made_up_identity(authority, fmt::format("client-{}", i))));
  }
}

Swarm::~Swarm() {
  Shared& shared = parts_->shared;
  std::unique_lock lock(shared.mutex);
  while (shared.gone < static_cast<int64_t>(parts_->begun)) {
    lock.unlock();
    for (const auto& client : parts_->clients) client->hang_up();
    lock.lock();
    shared.changed.wait_for(lock, kLook);
  }
}

void Swarm::join(int64_t clients) {
  Shared& shared = parts_->shared;
  for (int64_t i = 0; i < clients; ++i) parts_->clients[parts_->begun++]->join();
  std::unique_lock lock(shared.mutex);
  const auto all = static_cast<int64_t>(parts_->begun);
  while (shared.joined < all && shared.failed == 0) {
    if (interrupted()) throw Interrupted("interrupted: start the benchmark again");
    shared.changed.wait_for(lock, kLook);
  }
}

void Swarm::wait() {
  Shared& shared = parts_->shared;
  std::unique_lock lock(shared.mutex);
  const auto all = static_cast<int64_t>(parts_->begun);
  // One who fails is missing in its round, which would be waited for in vain.
  while (shared.gone < all && shared.failed == 0) {
    if (interrupted()) throw Interrupted("interrupted: start the benchmark again");
    shared.changed.wait_for(lock, kLook);
  }
}

int64_t Swarm::failed() const {
  const std::lock_guard lock(parts_->shared.mutex);
  return parts_->shared.failed;
}

std::string Swarm::failure() const {
  const std::lock_guard lock(parts_->shared.mutex);
  return parts_->shared.failure;
}

int64_t Swarm::stored() const {
  const std::lock_guard lock(parts_->shared.mutex);
  return parts_->shared.stored;
}

}  // namespace sotto::bench

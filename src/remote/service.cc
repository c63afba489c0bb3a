#include "remote/service.h"

#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "net/key_folders.h"
#include "net/revocations.h"
#include "net/tokens.h"
#include "remote/channel_options.h"
#include "remote/federation.grpc.pb.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <grpcpp/alarm.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <utility>

namespace sotto::remote {
namespace {

using grpc::CallbackServerContext;
using grpc::ServerUnaryReactor;
using grpc::Status;
using grpc::StatusCode;

constexpr auto kLongestPoll = std::chrono::seconds(30);
constexpr int kClientDays = 365;
// Broadcasts are sent in smaller pieces than uploads, and to so many at a time: everybody wants one in the same moment.
constexpr size_t kFetchBytes = 128 << 10;
constexpr size_t kMostFetchesAtATime = 64;

std::string peer_certificate(const CallbackServerContext& context) {
  const auto values = context.auth_context()->FindPropertyValues(GRPC_X509_PEM_CERT_PROPERTY_NAME);
  return values.empty() ? "" : std::string(values.front().data(), values.front().size());
}

struct Peer {
  std::string name;
  std::string fingerprint;
  bool revoked = false;
};

Peer claimed_peer(const CallbackServerContext& context) {
  const auto found = context.client_metadata().find(kNameHeader);
  if (found == context.client_metadata().end()) return {};
  std::string name(found->second.data(), found->second.size());
  return {.name = name, .fingerprint = "unverified " + name};
}

// Whoever cannot be made out is nobody.
Peer certified_peer(const CallbackServerContext& context, net::Revocations& revocations) {
  const std::string certificate = peer_certificate(context);
  try {
    return {.name = net::client_name(certificate),
            .fingerprint = net::fingerprint(certificate),
            .revoked = revocations.covers(certificate)};
  } catch (const UserError& error) {
    warn("somebody is turned away: {}", error.what());
    return {};
  }
}

void fill(const serve::Answer& answer, v1::OfferReply& reply) {
  switch (answer.verdict) {
    case serve::Verdict::kSend:
      reply.set_verdict(v1::OfferReply::SEND);
      break;
    case serve::Verdict::kStored:
      reply.set_verdict(v1::OfferReply::STORED);
      break;
    case serve::Verdict::kLate:
      reply.set_verdict(v1::OfferReply::LATE);
      break;
    case serve::Verdict::kBusy:
      reply.set_verdict(v1::OfferReply::BUSY);
      break;
    case serve::Verdict::kRefused:
      reply.set_verdict(v1::OfferReply::REFUSED);
      break;
  }
  reply.set_offset(answer.offset);
  reply.set_reason(answer.reason);
}

void fill(const serve::Work& work, v1::NextReply& reply) {
  switch (work.kind) {
    case serve::Work::Kind::kNothing:
      reply.set_kind(v1::NextReply::NOTHING);
      break;
    case serve::Work::Kind::kRound:
      reply.set_kind(v1::NextReply::ROUND);
      break;
    case serve::Work::Kind::kOver:
      reply.set_kind(v1::NextReply::OVER);
      break;
  }
  reply.set_round(work.round);
  reply.set_digest(work.digest);
  reply.set_bytes(work.bytes);
  reply.set_durable_round(work.durable_round);
}

// A question that waits for work. Whoever comes first, work or the clock, answers it.
class Poll : public std::enable_shared_from_this<Poll> {
 public:
  Poll(serve::Hub& hub, int64_t client, ServerUnaryReactor* reactor, v1::NextReply* reply)
      : hub_(hub), client_(client), reactor_(reactor), reply_(reply) {}

  void start() {
    alarm_.Set(std::chrono::system_clock::now() + kLongestPoll, [weak = weak_from_this()](bool) {
      if (const auto self = weak.lock()) self->answer();
    });
    const int64_t ticket = hub_.when_there_is_work(client_, [self = shared_from_this()] { self->answer(); });
    const std::lock_guard lock(mutex_);
    ticket_ = ticket;
  }

 private:
  void answer() {
    int64_t ticket = 0;
    {
      const std::lock_guard lock(mutex_);
      if (answered_) return;
      answered_ = true;
      ticket = ticket_;
    }
    fill(hub_.work_for(client_), *reply_);
    reactor_->Finish(Status::OK);
    if (ticket != 0) hub_.no_longer_wait(ticket);
  }

  serve::Hub& hub_;
  int64_t client_;
  ServerUnaryReactor* reactor_;
  v1::NextReply* reply_;
  grpc::Alarm alarm_;
  std::mutex mutex_;
  bool answered_ = false;
  int64_t ticket_ = 0;
};

// Lets so many go ahead at a time; others wait for their turn, in the order in which they came.
class Turns {
 public:
  explicit Turns(size_t most) : left_(most) {}

  // Calls back, at once or later, when it is the caller's turn; it ends with `end`.
  void begin(std::function<void()> call) {
    {
      const std::lock_guard lock(mutex_);
      if (left_ == 0) {
        waiting_.push_back(std::move(call));
        return;
      }
      --left_;
    }
    call();
  }

  void end() {
    std::function<void()> next;
    {
      const std::lock_guard lock(mutex_);
      if (waiting_.empty()) {
        ++left_;
        return;
      }
      next = std::move(waiting_.front());
      waiting_.pop_front();
    }
    next();
  }

 private:
  std::mutex mutex_;
  size_t left_;
  std::deque<std::function<void()>> waiting_;
};

class FileSender : public grpc::ServerWriteReactor<v1::Chunk> {
 public:
  FileSender(Turns& turns, const fs::path& file, int64_t offset) : turns_(&turns), offset_(offset) {
    // Opened at once: it may be replaced before it is our turn.
    descriptor_ = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
    turns_->begin([this] { send_next(); });
  }
  explicit FileSender(const Status& refusal) { Finish(refusal); }

  void OnWriteDone(bool ok) override {
    if (ok) {
      send_next();
    } else {
      Finish(Status(StatusCode::UNAVAILABLE, "the connection is gone"));
    }
  }
  void OnDone() override {
    if (descriptor_ >= 0) ::close(descriptor_);
    if (turns_ != nullptr) turns_->end();
    delete this;
  }

 private:
  void send_next() {
    if (descriptor_ < 0) {
      Finish(Status(StatusCode::NOT_FOUND, "it is not here any more"));
      return;
    }
    std::string& buffer = *chunk_.mutable_data();
    buffer.resize(kFetchBytes);
    const ssize_t count = ::pread(descriptor_, buffer.data(), buffer.size(), static_cast<off_t>(offset_));
    if (count <= 0) {
      Finish(count == 0 ? Status::OK : Status(StatusCode::UNAVAILABLE, "the server cannot read its files"));
      return;
    }
    buffer.resize(static_cast<size_t>(count));
    chunk_.set_offset(offset_);
    offset_ += count;
    StartWrite(&chunk_);
  }

  Turns* turns_ = nullptr;
  int descriptor_ = -1;
  int64_t offset_ = 0;
  v1::Chunk chunk_;
};

class UploadReceiver : public grpc::ServerReadReactor<v1::Chunk> {
 public:
  UploadReceiver(serve::Hub& hub, int64_t client, v1::OfferReply* reply) : hub_(hub), client_(client), reply_(reply) {
    StartRead(&chunk_);
  }
  explicit UploadReceiver(serve::Hub& hub, const Status& refusal) : hub_(hub) { Finish(refusal); }

  void OnReadDone(bool ok) override {
    if (!ok) {
      if (answer_.verdict == serve::Verdict::kSend) hub_.pause(client_);
      end();
      return;
    }
    if (!chunk_.key().empty()) key_ = chunk_.key();
    const int64_t expected = chunk_.offset() + static_cast<int64_t>(chunk_.data().size());
    try {
      answer_ = hub_.append(client_, key_, chunk_.offset(), chunk_.data());
    } catch (const std::exception& error) {  // whatever it is: a call without an answer would hang for hours
      warn("an upload of client {} cannot be kept: {}", client_, error.what());
      answer_ = {.verdict = serve::Verdict::kBusy};
    }
    if (answer_.verdict == serve::Verdict::kSend && answer_.offset == expected) {
      StartRead(&chunk_);
    } else {
      if (answer_.verdict == serve::Verdict::kSend || answer_.verdict == serve::Verdict::kBusy) hub_.pause(client_);
      end();
    }
  }
  void OnDone() override { delete this; }

 private:
  void end() {
    fill(answer_, *reply_);
    Finish(Status::OK);
  }

  serve::Hub& hub_;
  int64_t client_ = 0;
  v1::OfferReply* reply_ = nullptr;
  v1::Chunk chunk_;
  std::string key_;
  serve::Answer answer_;
};

class FederationImpl : public v1::Federation::CallbackService {
 public:
  FederationImpl(serve::Hub& hub, const federation::FederationPlan& plan, const ServiceOptions& options)
      : hub_(hub), plan_(plan), trusts_names_(!options.server), revocations_(options.authority_folder) {}

  ServerUnaryReactor* Plan(CallbackServerContext* context, const v1::PlanRequest* request,
                           v1::PlanReply* reply) override {
    if (request->oldest_version() > kProtocol || request->newest_version() < kProtocol) {
      return finish(context, Status(StatusCode::FAILED_PRECONDITION,
                                    fmt::format("the server speaks version {} of the protocol, and the client {} to {}",
                                                kProtocol, request->oldest_version(), request->newest_version())));
    }
    if (peer_of(*context).revoked) return finish(context, revoked());
    reply->set_version(kProtocol);
    reply->set_text(plan_.text());
    return finish(context, Status::OK);
  }

  ServerUnaryReactor* Join(CallbackServerContext* context, const v1::JoinRequest* request,
                           v1::JoinReply* reply) override {
    const Peer peer = peer_of(*context);
    if (peer.name.empty())
      return finish(context, Status(StatusCode::UNAUTHENTICATED, "the certificate names no client"));
    if (peer.revoked) return finish(context, revoked());
    if (request->plan_hash() != plan_.hash()) return finish(context, another_plan());
    try {
      const serve::Joined joined = hub_.join(peer.name, peer.fingerprint);
      reply->set_client(joined.client);
      reply->set_seen_round(joined.seen_round);
      reply->set_seen_digest(joined.seen_digest);
      return finish(context, Status::OK);
    } catch (const serve::Refused& refusal) {
      return finish(context, Status(StatusCode::PERMISSION_DENIED, refusal.what()));
    } catch (const UserError& error) {
      warn("{} cannot join: {}", peer.name, error.what());
      return finish(context, Status(StatusCode::UNAVAILABLE, "the server cannot take anybody in now"));
    }
  }

  ServerUnaryReactor* Next(CallbackServerContext* context, const v1::NextRequest* request,
                           v1::NextReply* reply) override {
    const auto client = member(*context);
    if (!client) return finish(context, not_a_member());
    // Whoever was here before may have been another server.
    if (request->plan_hash() != plan_.hash()) return finish(context, another_plan());
    ServerUnaryReactor* reactor = context->DefaultReactor();
    std::make_shared<Poll>(hub_, *client, reactor, reply)->start();
    return reactor;
  }

  grpc::ServerWriteReactor<v1::Chunk>* Fetch(CallbackServerContext* context, const v1::FetchRequest* request) override {
    if (!member(*context)) return new FileSender(not_a_member());
    const auto file = hub_.broadcast_file(request->digest());
    if (!file || request->offset() < 0) return new FileSender(Status(StatusCode::NOT_FOUND, "it is not here any more"));
    return new FileSender(turns_, *file, request->offset());
  }

  ServerUnaryReactor* Offer(CallbackServerContext* context, const v1::OfferRequest* request,
                            v1::OfferReply* reply) override {
    const auto client = member(*context);
    if (!client) return finish(context, not_a_member());
    return answer(context, *reply, [&] {
      return hub_.offer(*client, {.round = request->round(),
                                  .key = request->key(),
                                  .digest = request->digest(),
                                  .bytes = request->bytes(),
                                  .releases = request->releases()});
    });
  }

  grpc::ServerReadReactor<v1::Chunk>* Submit(CallbackServerContext* context, v1::OfferReply* reply) override {
    const auto client = member(*context);
    if (!client) return new UploadReceiver(hub_, not_a_member());
    return new UploadReceiver(hub_, *client, reply);
  }

  ServerUnaryReactor* Skip(CallbackServerContext* context, const v1::SkipRequest* request,
                           v1::OfferReply* reply) override {
    const auto client = member(*context);
    if (!client) return finish(context, not_a_member());
    return answer(context, *reply, [&] { return hub_.skip(*client, request->round()); });
  }

  ServerUnaryReactor* Leave(CallbackServerContext* context, const v1::LeaveRequest*, v1::LeaveReply*) override {
    const auto client = member(*context);
    if (!client) return finish(context, not_a_member());
    hub_.leave(*client);
    return finish(context, Status::OK);
  }

 private:
  static ServerUnaryReactor* finish(CallbackServerContext* context, const Status& status) {
    ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(status);
    return reactor;
  }

  template <typename Ask>
  static ServerUnaryReactor* answer(CallbackServerContext* context, v1::OfferReply& reply, const Ask& ask) {
    try {
      fill(ask(), reply);
      return finish(context, Status::OK);
    } catch (const std::exception& error) {
      warn("an upload cannot be kept: {}", error.what());
      return finish(context, Status(StatusCode::UNAVAILABLE, "the server cannot keep it now"));
    }
  }

  Peer peer_of(const CallbackServerContext& context) {
    const Peer peer = trusts_names_ ? claimed_peer(context) : certified_peer(context, revocations_);
    if (peer.revoked) hub_.revoke(peer.fingerprint);
    return peer;
  }
  std::optional<int64_t> member(const CallbackServerContext& context) {
    const Peer peer = peer_of(context);
    return peer.fingerprint.empty() ? std::nullopt : hub_.member(peer.fingerprint);
  }
  static Status not_a_member() {
    return {StatusCode::PERMISSION_DENIED, "join first; or this certificate was revoked"};
  }
  static Status revoked() { return {StatusCode::PERMISSION_DENIED, "this certificate was revoked"}; }
  static Status another_plan() {
    return {StatusCode::FAILED_PRECONDITION, "this server has another plan; fetch it again"};
  }

  serve::Hub& hub_;
  const federation::FederationPlan& plan_;
  const bool trusts_names_;
  net::Revocations revocations_;
  Turns turns_{kMostFetchesAtATime};
};

class EnrolmentImpl : public v1::Enrolment::CallbackService {
 public:
  explicit EnrolmentImpl(fs::path folder) : folder_(std::move(folder)) {}

  ServerUnaryReactor* Enrol(CallbackServerContext* context, const v1::EnrolRequest* request,
                            v1::EnrolReply* reply) override {
    ServerUnaryReactor* reactor = context->DefaultReactor();
    try {
      const std::string name = net::name_of_token(folder_, request->token());
      std::string certificate = net::issue_client(net::read_authority(folder_), request->request(), name, kClientDays);
      net::take_token(folder_, request->token());
      reply->set_certificate(std::move(certificate));
      info("{} has enrolled", name);
      reactor->Finish(Status::OK);
    } catch (const net::RequestRefused& refusal) {
      reactor->Finish(Status(StatusCode::PERMISSION_DENIED, refusal.what()));
    } catch (const UserError& error) {
      warn("nobody can enrol: {}", error.what());
      reactor->Finish(Status(StatusCode::UNAVAILABLE, "the server cannot issue certificates now"));
    }
    return reactor;
  }

 private:
  const fs::path folder_;
};

std::shared_ptr<grpc::ServerCredentials> credentials(const std::optional<net::KeyPair>& server,
                                                     const std::string& authority_pem) {
  if (!server) return grpc::InsecureServerCredentials();
  grpc::SslServerCredentialsOptions options(authority_pem.empty()
                                                ? GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE
                                                : GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  options.pem_root_certs = authority_pem;
  options.pem_key_cert_pairs.push_back({server->key_pem, server->certificate_pem});
  return grpc::SslServerCredentials(options);
}

std::unique_ptr<grpc::Server> listen(const std::string& address, const std::optional<net::KeyPair>& server,
                                     const std::string& authority_pem, grpc::Service& service, int& port) {
  grpc::EnableDefaultHealthCheckService(true);
  grpc::ServerBuilder builder;
  builder.AddListeningPort(address, credentials(server, authority_pem), &port);
  builder.RegisterService(&service);
  builder.SetMaxReceiveMessageSize(kLargestRequest);
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  set_keepalive(builder);
  bound_memory(builder);
  auto running = builder.BuildAndStart();
  if (!running || port == 0) fail_user("cannot listen on {}: it is in use, or not an address of this machine", address);
  return running;
}

}  // namespace

struct Service::Parts {
  Parts(serve::Hub& whose, const federation::FederationPlan& plan, const ServiceOptions& options)
      : hub(whose), implementation(whose, plan, options) {}

  serve::Hub& hub;
  FederationImpl implementation;
  std::unique_ptr<grpc::Server> server;
  int port = 0;
};

Service::Service(serve::Hub& hub, const federation::FederationPlan& plan, const ServiceOptions& options) {
  if (!options.server && !is_loopback(options.address)) {
    fail_user("{} is not on the loopback interface: without certificates nothing leaves this machine", options.address);
  }
  parts_ = std::make_unique<Parts>(hub, plan, options);
  parts_->server = listen(options.address, options.server, options.authority_pem, parts_->implementation, parts_->port);
}

Service::~Service() {
  shut_down();
}

int Service::port() const {
  return parts_->port;
}

void Service::shut_down() {
  if (!parts_->server) return;
  parts_->hub.stop_waiting();
  parts_->server->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(2));
  parts_->server->Wait();
  parts_->server.reset();
}

struct EnrolmentService::Parts {
  explicit Parts(const fs::path& folder) : implementation(folder) {}

  EnrolmentImpl implementation;
  std::unique_ptr<grpc::Server> server;
  int port = 0;
};

EnrolmentService::EnrolmentService(const fs::path& folder, const std::string& address)
    : parts_(std::make_unique<Parts>(folder)) {
  // The authority's certificate travels along, for clients that know its fingerprint alone.
  net::KeyPair server = net::read_server(folder);
  server.certificate_pem += net::read_certificate_file(folder / "authority.pem");
  parts_->server = listen(address, server, "", parts_->implementation, parts_->port);
}

EnrolmentService::~EnrolmentService() {
  parts_->server->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(1));
  parts_->server->Wait();
}

int EnrolmentService::port() const {
  return parts_->port;
}

}  // namespace sotto::remote

#include "remote/client.h"

#include "base/error.h"
#include "base/fault_points.h"
#include "base/files.h"
#include "base/printable.h"
#include "remote/call_words.h"
#include "remote/channel_options.h"
#include "remote/federation.grpc.pb.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <chrono>
#include <mutex>
#include <thread>
#include <utility>

namespace sotto::remote {
namespace {

using grpc::ClientContext;
using grpc::Status;
using grpc::StatusCode;

constexpr int64_t kLargestBroadcast = int64_t{8} << 30;
constexpr auto kShortCall = std::chrono::seconds(30);
constexpr auto kPoll = std::chrono::seconds(45);
constexpr auto kTransfer = std::chrono::hours(6);

void check(const Status& status, const std::string& address) {
  if (status.ok()) return;
  switch (status.error_code()) {
    case StatusCode::PERMISSION_DENIED:
    case StatusCode::UNAUTHENTICATED:
    case StatusCode::FAILED_PRECONDITION:
    case StatusCode::INVALID_ARGUMENT:
      fail_user("{} refuses: {}", address, printable(status.error_message()));
    case StatusCode::UNIMPLEMENTED:
      fail_user("{} serves something else: rounds and enrolment have ports of their own", address);
    default:
      throw Unreachable(
          fmt::format("{} cannot be reached: {}", address, unreachable_in_words(printable(status.error_message()))));
  }
}

std::shared_ptr<grpc::Channel> channel_to(const std::string& address, const std::optional<net::Identity>& identity) {
  grpc::ChannelArguments arguments;
  set_keepalive(arguments);
  arguments.SetMaxReceiveMessageSize(kLargestReply);
  if (!identity) {
    if (!is_loopback(address)) {
      fail_user("{} is not on the loopback interface: without certificates nothing leaves this machine", address);
    }
    return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
  }
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = identity->authority_pem;
  options.pem_private_key = identity->key_pem;
  options.pem_cert_chain = identity->certificate_pem;
  return grpc::CreateCustomChannel(address, grpc::SslCredentials(options), arguments);
}

class OpenFile {
 public:
  explicit OpenFile(const fs::path& path) : descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (descriptor_ < 0) fail_user("cannot read {}", path.string());
  }
  ~OpenFile() { ::close(descriptor_); }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  // Fills the buffer from this offset as far as the file goes.
  void read(std::string& buffer, int64_t offset) const {
    buffer.resize(kChunkBytes);
    const ssize_t count = ::pread(descriptor_, buffer.data(), buffer.size(), static_cast<off_t>(offset));
    buffer.resize(count > 0 ? static_cast<size_t>(count) : 0);
  }

 private:
  int descriptor_;
};

}  // namespace

struct Client::Parts {
  std::string address;
  std::string name;
  bool says_its_name = false;
  std::unique_ptr<v1::Federation::Stub> stub;

  template <typename Duration>
  void prepare(ClientContext& context, Duration limit) const {
    context.set_deadline(std::chrono::system_clock::now() + limit);
    if (says_its_name) context.AddMetadata(kNameHeader, name);
  }
  // The call that hang_up ends.
  class Current {
   public:
    Current(Parts& parts, ClientContext& context) : parts_(parts) { set(&context); }
    ~Current() { set(nullptr); }
    Current(const Current&) = delete;
    Current& operator=(const Current&) = delete;

   private:
    void set(ClientContext* context) {
      const std::lock_guard lock(parts_.mutex);
      parts_.current = context;
    }
    Parts& parts_;
  };
  std::mutex mutex;
  ClientContext* current = nullptr;
  // The beginning of a broadcast whose connection broke.
  std::string fetched;
  std::string fetched_digest;

  template <typename Duration, typename Request, typename Reply>
  Reply call(Status (v1::Federation::Stub::*method)(ClientContext*, const Request&, Reply*), const Request& request,
             Duration limit) {
    ClientContext context;
    prepare(context, limit);
    const Current under_way(*this, context);
    Reply reply;
    check((stub.get()->*method)(&context, request, &reply), address);
    return reply;
  }
};

Client::Client(const std::string& address, const std::optional<net::Identity>& identity, const std::string& name)
    : parts_(std::make_unique<Parts>()) {
  parts_->address = address;
  parts_->name = name;
  parts_->says_its_name = !identity;
  parts_->stub = v1::Federation::NewStub(channel_to(address, identity));
}

Client::~Client() = default;

void Client::hang_up() {
  const std::lock_guard lock(parts_->mutex);
  if (parts_->current != nullptr) parts_->current->TryCancel();
}

std::string Client::plan() {
  v1::PlanRequest request;
  request.set_oldest_version(kProtocol);
  request.set_newest_version(kProtocol);
  return parts_->call(&v1::Federation::Stub::Plan, request, kShortCall).text();
}

federation::Joined Client::join(const std::string& plan_hash) {
  v1::JoinRequest request;
  request.set_plan_hash(plan_hash);
  const v1::JoinReply reply = parts_->call(&v1::Federation::Stub::Join, request, kShortCall);
  return {reply.client(), reply.seen_round(), reply.seen_digest()};
}

federation::Work Client::next(const std::string& plan_hash) {
  v1::NextRequest request;
  request.set_plan_hash(plan_hash);
  const v1::NextReply reply = parts_->call(&v1::Federation::Stub::Next, request, kPoll);
  using Kind = federation::Work::Kind;
  return {.kind = reply.kind() == v1::NextReply::ROUND  ? Kind::kRound
                  : reply.kind() == v1::NextReply::OVER ? Kind::kOver
                                                        : Kind::kNothing,
          .round = reply.round(),
          .digest = reply.digest(),
          .bytes = reply.bytes(),
          .durable_round = reply.durable_round()};
}

std::string Client::fetch(const std::string& digest, int64_t bytes) {
  if (bytes <= 0 || bytes > kLargestBroadcast) fail_user("{} offers a broadcast of {} bytes", parts_->address, bytes);
  std::string& content = parts_->fetched;
  if (std::exchange(parts_->fetched_digest, digest) != digest) content.clear();
  content.reserve(static_cast<size_t>(bytes));
  ClientContext context;
  parts_->prepare(context, kTransfer);
  const Parts::Current under_way(*parts_, context);
  v1::FetchRequest request;
  request.set_digest(digest);
  request.set_offset(static_cast<int64_t>(content.size()));
  const auto reader = parts_->stub->Fetch(&context, request);
  v1::Chunk chunk;
  bool fits = true;
  while (fits && reader->Read(&chunk)) {
    fits = chunk.offset() == static_cast<int64_t>(content.size()) &&
           content.size() + chunk.data().size() <= static_cast<size_t>(bytes);
    if (fits) content += chunk.data();
  }
  if (!fits) context.TryCancel();
  const Status end = reader->Finish();
  if (fits) check(end, parts_->address);  // what is here is kept for the next time
  std::string whole = std::exchange(content, {});
  parts_->fetched_digest.clear();
  if (!fits || sha256(whole) != digest) throw Unreachable("what came in is not what was announced");
  return whole;
}

federation::Answer Client::deliver(const federation::Offer& upload, const fs::path& path,
                                   const std::function<bool()>& stop) {
  v1::OfferRequest offer;
  offer.set_round(upload.round);
  offer.set_key(upload.key);
  offer.set_digest(upload.digest);
  offer.set_bytes(upload.bytes);
  offer.set_releases(upload.releases);
  const OpenFile file(path);
  for (int busy = 0;;) {
    v1::OfferReply reply = parts_->call(&v1::Federation::Stub::Offer, offer, kShortCall);
    if (reply.verdict() == v1::OfferReply::SEND) {
      ClientContext context;
      parts_->prepare(context, kTransfer);
      const Parts::Current under_way(*parts_, context);
      v1::OfferReply end;
      const auto writer = parts_->stub->Submit(&context, &end);
      v1::Chunk chunk;
      chunk.set_key(upload.key);
      for (int64_t offset = reply.offset(); offset < upload.bytes;) {
        file.read(*chunk.mutable_data(), offset);
        if (chunk.data().empty()) fail_user("{} is shorter than it was", path.string());
        chunk.set_offset(offset);
        offset += static_cast<int64_t>(chunk.data().size());
        fault_point("member.sending");
        if (!writer->Write(chunk)) break;
        chunk.clear_key();
      }
      writer->WritesDone();
      check(writer->Finish(), parts_->address);
      reply = end;
    }
    switch (reply.verdict()) {
      case v1::OfferReply::STORED:
        return {.verdict = federation::Verdict::kStored};
      case v1::OfferReply::LATE:
        return {.verdict = federation::Verdict::kLate};
      case v1::OfferReply::REFUSED:
        return {.verdict = federation::Verdict::kRefused, .offset = 0, .reason = printable(reply.reason())};
      default:
        if (stop()) throw Unreachable("stopped while the server was busy");
        std::this_thread::sleep_for(busy_pause(busy++));
    }
  }
}

void Client::skip(int64_t round) {
  v1::SkipRequest request;
  request.set_round(round);
  parts_->call(&v1::Federation::Stub::Skip, request, kShortCall);
}

void Client::leave() {
  parts_->call(&v1::Federation::Stub::Leave, v1::LeaveRequest(), kShortCall);
}

std::string enrol(const std::string& address, const std::string& authority_pem, const std::string& token,
                  const std::string& request_pem) {
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = authority_pem;
  const auto stub = v1::Enrolment::NewStub(grpc::CreateChannel(address, grpc::SslCredentials(options)));
  ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kShortCall);
  v1::EnrolRequest request;
  request.set_token(token);
  request.set_request(request_pem);
  v1::EnrolReply reply;
  check(stub->Enrol(&context, request, &reply), address);
  return reply.certificate();
}

}  // namespace sotto::remote

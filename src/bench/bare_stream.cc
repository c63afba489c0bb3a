#include "bench/bare_stream.h"

#include "base/error.h"
#include "remote/channel_options.h"
#include "remote/federation.grpc.pb.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <grpcpp/grpcpp.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <utility>

namespace sotto::bench {
namespace {

using Clock = std::chrono::steady_clock;

class Discard : public grpc::ServerReadReactor<v1::Chunk> {
 public:
  Discard() { StartRead(&chunk_); }
  void OnReadDone(bool ok) override {
    if (ok) {
      StartRead(&chunk_);
    } else {
      Finish(grpc::Status::OK);
    }
  }
  void OnDone() override { delete this; }

 private:
  v1::Chunk chunk_;
};

class SinkService : public v1::Federation::CallbackService {
 public:
  grpc::ServerReadReactor<v1::Chunk>* Submit(grpc::CallbackServerContext*, v1::OfferReply*) override {
    return new Discard;
  }
};

// The life of the sink's process: says its port, and ends when the other side of `until` is closed.
void take_in(const net::KeyPair& server, const std::string& authority_pem, int port_to, int until) {
  SinkService service;
  grpc::SslServerCredentialsOptions options(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  options.pem_root_certs = authority_pem;
  options.pem_key_cert_pairs.push_back({server.key_pem, server.certificate_pem});
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("localhost:0", grpc::SslServerCredentials(options), &port);
  builder.RegisterService(&service);
  builder.SetMaxReceiveMessageSize(remote::kLargestRequest);
  remote::set_keepalive(builder);
  const auto running = builder.BuildAndStart();
  if (::write(port_to, &port, sizeof port) != sizeof port) return;
  char nothing = 0;
  while (::read(until, &nothing, 1) > 0) {
  }
}

std::array<int, 2> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) fail_user("cannot make a pipe to the other process");
  return ends;
}

}  // namespace

BareSink::BareSink(const net::KeyPair& server, const std::string& authority_pem) {
  const auto [port_from, port_to] = make_pipe();
  const auto [until, end] = make_pipe();
  process_ = ::fork();
  if (process_ < 0) fail_user("cannot start another process");
  if (process_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::close(end);
    take_in(server, authority_pem, port_to, until);
    ::_exit(0);
  }
  end_ = end;
  ::close(until);
  ::close(port_to);
  const bool told = ::read(port_from, &port_, sizeof port_) == sizeof port_;
  ::close(port_from);
  if (!told || port_ == 0) fail_user("cannot listen on a port of this machine");
}

BareSink::~BareSink() {
  ::close(end_);
  ::waitpid(process_, nullptr, 0);
}

std::string BareSink::address() const {
  return fmt::format("localhost:{}", port_);
}

struct BareSender::Parts {
  std::unique_ptr<v1::Federation::Stub> stub;
};

BareSender::BareSender(const std::string& address, const net::Identity& identity) : parts_(std::make_unique<Parts>()) {
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = identity.authority_pem;
  options.pem_private_key = identity.key_pem;
  options.pem_cert_chain = identity.certificate_pem;
  grpc::ChannelArguments arguments;
  remote::set_keepalive(arguments);
  parts_->stub = v1::Federation::NewStub(grpc::CreateCustomChannel(address, grpc::SslCredentials(options), arguments));
}

BareSender::~BareSender() = default;

double BareSender::send(int64_t bytes) {
  v1::Chunk chunk;
  chunk.mutable_data()->resize(remote::kChunkBytes);
  const auto begin = Clock::now();
  grpc::ClientContext context;
  v1::OfferReply reply;
  const auto writer = parts_->stub->Submit(&context, &reply);
  for (int64_t left = bytes; left > 0;) {
    chunk.mutable_data()->resize(static_cast<size_t>(std::min<int64_t>(left, remote::kChunkBytes)));
    left -= static_cast<int64_t>(chunk.data().size());
    chunk.set_offset(bytes - left);
    if (!writer->Write(chunk)) break;
  }
  writer->WritesDone();
  if (const grpc::Status status = writer->Finish(); !status.ok()) {
    fail_user("the bare stream broke: {}", status.error_message());
  }
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

}  // namespace sotto::bench

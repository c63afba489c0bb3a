#include "remote/channel_options.h"

namespace sotto::remote {
namespace {

constexpr int kPingEvery = 60'000;  // ms
constexpr int kPongWithin = 20'000;

}  // namespace

void set_keepalive(grpc::ServerBuilder& builder) {
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kPingEvery);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kPongWithin);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, kPingEvery / 2);
}

void set_keepalive(grpc::ChannelArguments& arguments) {
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kPingEvery);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kPongWithin);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
}

bool is_loopback(const std::string& address) {
  const std::string host = address.substr(0, address.rfind(':'));
  return host == "localhost" || host.starts_with("127.") || host == "[::1]" || host.starts_with("unix");
}

}  // namespace sotto::remote

#include "remote/channel_options.h"

#include <algorithm>
#include <cmath>
#include <random>

namespace sotto::remote {
namespace {

constexpr int kPingEvery = 60'000;  // ms
constexpr int kPongWithin = 20'000;
constexpr int kReadBytes = 64 << 10;
constexpr int kBytesAhead = 256 << 10;
constexpr double kShortestBusyPause = 200;  // ms
constexpr double kLongestBusyPause = 2000;
constexpr double kBusyGrowth = 1.5;

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

void bound_memory(grpc::ServerBuilder& builder) {
  // Buffers grow with the traffic, to megabytes, and stay with their connection.
  builder.AddChannelArgument(GRPC_ARG_TCP_MAX_READ_CHUNK_SIZE, kReadBytes);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kBytesAhead);
}

std::chrono::milliseconds busy_pause(int times) {
  thread_local std::minstd_rand generator{std::random_device{}()};
  const double longest = std::min(kLongestBusyPause, kShortestBusyPause * std::pow(kBusyGrowth, times));
  return std::chrono::milliseconds(
      static_cast<int64_t>(std::uniform_real_distribution<double>(longest / 2, longest)(generator)));
}

bool is_loopback(const std::string& address) {
  const std::string host = address.substr(0, address.rfind(':'));
  return host == "localhost" || host.starts_with("127.") || host == "[::1]" || host.starts_with("unix");
}

}  // namespace sotto::remote

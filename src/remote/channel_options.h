// What both ends of a connection agree on.
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

namespace sotto::remote {

inline constexpr uint32_t kProtocol = 1;
inline constexpr size_t kChunkBytes = 256 << 10;  // of a file; a server may hold a few for every upload that comes in
inline constexpr int kLargestRequest = 2 << 20;
inline constexpr int kLargestReply = 8 << 20;             // a plan names classes and columns
inline constexpr const char* kNameHeader = "sotto-name";  // who a client says it is, where there are no certificates

// Connections that are dead in silence are found out.
void set_keepalive(grpc::ServerBuilder& builder);
void set_keepalive(grpc::ChannelArguments& arguments);

// What a connection keeps to itself when nothing moves, and what it takes in ahead of the reader.
void bound_memory(grpc::ServerBuilder& builder);

// How long a client waits that was told for the n-th time, counted from 0, that the server is busy: longer from time to
// time, and not the same for everybody.
std::chrono::milliseconds busy_pause(int times);

// Whether host:port can be reached from this machine alone.
bool is_loopback(const std::string& address);

}  // namespace sotto::remote

// What both ends of a connection agree on.
#pragma once

#include <grpcpp/grpcpp.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace sotto::remote {

inline constexpr uint32_t kProtocol = 1;
inline constexpr size_t kChunkBytes = 1 << 20;
inline constexpr const char* kNameHeader = "sotto-name";  // who a client says it is, where there are no certificates

// Connections that are dead in silence are found out.
void set_keepalive(grpc::ServerBuilder& builder);
void set_keepalive(grpc::ChannelArguments& arguments);

// Whether host:port can be reached from this machine alone.
bool is_loopback(const std::string& address);

}  // namespace sotto::remote

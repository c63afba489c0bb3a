#include "remote/address.h"

#include "base/error.h"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>

namespace sotto::remote {
namespace {

bool can_listen(const addrinfo& where) {
  const int descriptor = ::socket(where.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return false;
  const int yes = 1;
  ::setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  const bool bound = ::bind(descriptor, where.ai_addr, where.ai_addrlen) == 0 && ::listen(descriptor, 1) == 0;
  ::close(descriptor);
  return bound;
}

}  // namespace

Address split_address(const std::string& text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == text.size()) {
    fail_user("'{}' is no address: write HOST:PORT", text);
  }
  std::string host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return {host, text.substr(colon + 1)};
}

void require_free(const std::string& address) {
  const Address wanted = split_address(address);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  if (::getaddrinfo(wanted.host.c_str(), wanted.port.c_str(), &hints, &found) != 0) {
    fail_user("{} is no address of this machine", address);
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> all(found, ::freeaddrinfo);
  if (!can_listen(*found)) fail_user("cannot listen on {}: it is in use, or not an address of this machine", address);
}

}  // namespace sotto::remote

// HOST:PORT, before anything of gRPC looks at it.
#pragma once

#include <string>

namespace sotto::remote {

struct Address {
  std::string host;  // IPv6 without its brackets
  std::string port;
};

// A UserError if it is none.
Address split_address(const std::string& text);

// A UserError unless a server could listen there now.
void require_free(const std::string& address);

}  // namespace sotto::remote

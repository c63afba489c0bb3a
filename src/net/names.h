// Names in a federation, and how certificates carry them.
#pragma once

#include <string>
#include <string_view>

namespace sotto::net {

// 1 to 64 of a-z, 0-9 and hyphen: safe in a path, a URI, a certificate and a line of text.
bool is_name(std::string_view text);
// A UserError unless it is one. `what` says whose name, for the message.
void check_name(std::string_view text, std::string_view what);

// sotto://client/NAME
std::string client_uri(std::string_view name);
// The name in such a URI; "" if the URI is another one.
std::string name_in_uri(std::string_view uri);

enum class HostKind { kName, kAddress, kNeither };
// What a server can be reached by: a DNS name without wildcards, or an IPv4 or IPv6 address.
HostKind host_kind(const std::string& host);

}  // namespace sotto::net

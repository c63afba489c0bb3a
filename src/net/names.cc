#include "net/names.h"

#include "base/error.h"
#include "base/text.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <vector>

namespace sotto::net {
namespace {

constexpr std::string_view kClientUri = "sotto://client/";
constexpr size_t kLongestName = 64;
constexpr size_t kLongestHost = 253;
constexpr size_t kLongestLabel = 63;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_lower_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || is_digit(c);
}

bool is_label(std::string_view label) {
  return !label.empty() && label.size() <= kLongestLabel && label.front() != '-' && label.back() != '-' &&
         std::all_of(label.begin(), label.end(),
                     [](char c) { return is_lower_or_digit(c) || (c >= 'A' && c <= 'Z') || c == '-'; });
}

// A last label of digits alone is a mistyped address.
bool is_dns_name(const std::string& host) {
  if (host.empty() || host.size() > kLongestHost) return false;
  const std::vector<std::string> labels = split(host, '.');
  return std::all_of(labels.begin(), labels.end(), is_label) &&
         !std::all_of(labels.back().begin(), labels.back().end(), is_digit);
}

bool is_address(const std::string& host) {
  std::array<unsigned char, sizeof(in6_addr)> parsed{};
  return host.find('\0') == std::string::npos && (::inet_pton(AF_INET, host.c_str(), parsed.data()) == 1 ||
                                                  ::inet_pton(AF_INET6, host.c_str(), parsed.data()) == 1);
}

}  // namespace

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= kLongestName &&
         std::all_of(text.begin(), text.end(), [](char c) { return is_lower_or_digit(c) || c == '-'; });
}

void check_name(std::string_view text, std::string_view what) {
  if (is_name(text)) return;
  fail_user("the name of {} must be 1 to {} of a-z, 0-9 and hyphen", what, kLongestName);
}

std::string client_uri(std::string_view name) {
  return std::string(kClientUri) + std::string(name);
}

std::string name_in_uri(std::string_view uri) {
  if (!uri.starts_with(kClientUri)) return "";
  uri.remove_prefix(kClientUri.size());
  return is_name(uri) ? std::string(uri) : "";
}

HostKind host_kind(const std::string& host) {
  if (is_address(host)) return HostKind::kAddress;
  return is_dns_name(host) ? HostKind::kName : HostKind::kNeither;
}

}  // namespace sotto::net

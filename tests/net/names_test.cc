#include "net/names.h"

#include "../support/expect_user_error.h"

#include <gtest/gtest.h>

namespace sotto::net {
namespace {

using std::string_literals::operator""s;

TEST(Names, AreLowerCaseDigitsAndHyphens) {
  for (const std::string& name : {"a"s, "clinic-a"s, "7"s, "-"s, std::string(64, 'x')})
    EXPECT_TRUE(is_name(name)) << name;
  for (const std::string& name :
       {""s, "A"s, "a b"s, "a/b"s, ".."s, "a\n"s, "a\0b"s, "ä"s, "a,URI:x"s, std::string(65, 'x')}) {
    EXPECT_FALSE(is_name(name)) << name;
    EXPECT_USER_ERROR(check_name(name, "a client"), "the name of a client");
  }
}

TEST(Names, TravelInAUri) {
  EXPECT_EQ(client_uri("clinic-a"), "sotto://client/clinic-a");
  EXPECT_EQ(name_in_uri("sotto://client/clinic-a"), "clinic-a");
  for (const std::string& uri : {""s, "clinic-a"s, "sotto://client/"s, "sotto://server/a"s, "sotto://client/a/b"s,
                                 "sotto://client/a\0"s, "SOTTO://client/a"s, " sotto://client/a"s}) {
    EXPECT_EQ(name_in_uri(uri), "") << uri;
  }
}

TEST(Names, HostsAreDnsNamesOrAddresses) {
  for (const std::string& host : {"localhost"s, "fl.example.org"s, "FL-1.example.org"s, "7.example"s}) {
    EXPECT_EQ(host_kind(host), HostKind::kName) << host;
  }
  for (const std::string& host : {"127.0.0.1"s, "::1"s, "2001:db8::7"s}) {
    EXPECT_EQ(host_kind(host), HostKind::kAddress) << host;
  }
  for (const std::string& host :
       {""s, "300.0.0.1"s, "1.2.3"s, "*.example.org"s, "a..b"s, "-a.org"s, "a_b"s, "a.org,IP:1.2.3.4"s,
        "localhost:50051"s, "127.0.0.1\0x"s, std::string(64, 'x'), "a.org."s}) {
    EXPECT_EQ(host_kind(host), HostKind::kNeither) << host;
  }
}

}  // namespace
}  // namespace sotto::net

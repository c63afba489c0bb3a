// What a server's side can get at, as facts of compilation.
#include "methods/method.h"

#include <gtest/gtest.h>

#include <type_traits>

namespace sotto::methods {
namespace {

template <typename Context>
concept SeesRecords = requires(const Context& context) {
  context.records;
};

static_assert(SeesRecords<ClientContext>);
static_assert(!SeesRecords<PublicContext>);
static_assert(!SeesRecords<PublicFacts>);
static_assert(!SeesRecords<RoundContext>);

// A plan and a server are made of what is public, and a client cannot be made of that alone.
using MakeServer = decltype(MethodEntry::make_server);
using MakeClient = decltype(MethodEntry::make_client);
using Plan = decltype(MethodEntry::plan);
static_assert(std::is_invocable_v<MakeServer, const PublicContext&>);
static_assert(std::is_same_v<MakeServer, std::function<std::unique_ptr<ServerMethod>(const PublicContext&)>>);
static_assert(std::is_same_v<Plan, std::function<ReleasePlan(const PublicContext&, const ClientFacts&)>>);
static_assert(std::is_invocable_v<MakeClient, const ClientContext&>);
static_assert(!std::is_invocable_v<MakeClient, const PublicContext&>);
static_assert(!std::is_convertible_v<PublicContext, ClientContext>);

// A server takes uploads, which are releases or what a declared trust hands over: nothing else can be accepted.
static_assert(std::is_invocable_v<decltype(&ServerMethod::accept), ServerMethod&, const privacy::Upload&>);
static_assert(!std::is_invocable_v<decltype(&ServerMethod::accept), ServerMethod&, const privacy::Contribution&>);
static_assert(!std::is_invocable_v<decltype(&ServerMethod::accept), ServerMethod&, const privacy::PrivateState&>);

TEST(Boundary, IsDrawnByTheTypes) {
  const RunSettings spec;
  const PublicFacts facts{.class_names = {"a", "b"}};
  const data::Records records;
  const ClientContext client{{spec, facts}, records};
  const PublicContext& seen_by_server = client;
  EXPECT_EQ(seen_by_server.facts.classes(), 2);
}

}  // namespace
}  // namespace sotto::methods

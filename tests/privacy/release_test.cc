#include "privacy/release.h"

#include "base/error.h"
#include "io/safetensors.h"
#include "privacy/access.h"
#include "privacy/channel.h"
#include "privacy/ledger.h"

#include <ATen/ATen.h>

#include <gtest/gtest.h>

#include <cmath>
#include <type_traits>

namespace sotto::privacy {
namespace {

// A type "has readable values" if code outside the privacy folder can get at its tensors, which is what sending it
// needs.
template <typename T>
concept HasReadableValues = requires(const T& value) {
  value.values();
};

template <typename T>
concept CanBeWritten = requires(const T& value) {
  io::write_safetensors("file", {.tensors = value, .metadata = {}});
};

template <typename T>
concept CanBeWrittenThroughValues = requires(const T& value) {
  io::write_safetensors("file", {.tensors = value.values(), .metadata = {}});
};

static_assert(!HasReadableValues<Contribution>);
static_assert(!CanBeWritten<Contribution>);
static_assert(!CanBeWrittenThroughValues<Contribution>);
static_assert(!std::is_copy_constructible_v<Contribution>);
static_assert(CanBeWrittenThroughValues<Release>);

static_assert(!std::is_constructible_v<Release, NamedTensors, Receipt>);
static_assert(!std::is_constructible_v<Release, Contribution, Receipt>);
static_assert(!std::is_default_constructible_v<Release>);
static_assert(!std::is_constructible_v<Receipt, int64_t>);
static_assert(!std::is_convertible_v<PrivateState, Upload>);
static_assert(!std::is_convertible_v<Contribution, Upload>);

// Bounded values are as private as they were; only a trusted server, declared as such, gets to read them.
static_assert(!HasReadableValues<Bounded>);
static_assert(!CanBeWritten<Bounded>);
static_assert(!CanBeWrittenThroughValues<Bounded>);
static_assert(!std::is_copy_constructible_v<Bounded>);
static_assert(!std::is_constructible_v<Bounded, NamedTensors, std::vector<Group>, Norm>);
static_assert(!std::is_convertible_v<Bounded, Upload>);
static_assert(!std::is_constructible_v<Trusted<Bounded>, Bounded, Receipt>);
static_assert(!std::is_default_constructible_v<TrustedServer>);
static_assert(CanBeWrittenThroughValues<Upload>);
static_assert(std::is_convertible_v<Trusted<Bounded>, Upload>);
static_assert(!std::is_copy_constructible_v<Receipt>);

// A function that turns one form of a release into another cannot bring anything along but what is written beside it.
using Plain = NamedTensors (*)(const NamedTensors&, const double&);
template <typename Change>
concept PostProcesses = requires(Release&& release, Change change) {
  post_process(std::move(release), change, 1.0);
};
static_assert(PostProcesses<Plain>);
inline auto capturing(const at::Tensor& secret) {
  return [secret](const NamedTensors&, const double&) { return NamedTensors{{"secret", secret}}; };
}
static_assert(!PostProcesses<decltype(capturing(at::Tensor()))>);

TEST(InTheClear, ReleasesTheValuesAndSaysWhyInTheLedger) {
  Ledger ledger;
  const at::Tensor value = at::arange(4, at::kFloat);
  const Release release = Channel::in_the_clear("model", "a baseline without privacy")
                              .release_clear({.ledger = ledger, .round = 3, .client = 7}, [&] {
                                return Contribution({{"weight", value}});
                              });
  EXPECT_TRUE(at::equal(release.values()[0].value, value));
  ASSERT_EQ(ledger.events().size(), 1U);
  const Event event = ledger.events()[0];
  EXPECT_EQ(event.round, 3);
  EXPECT_EQ(event.client, 7);
  EXPECT_EQ(event.mechanism, kClearMechanism);
  const Guarantee guarantee = ledger.tallies("server").at(7).guarantee(1e-5);
  EXPECT_TRUE(std::isinf(guarantee.proven));
  EXPECT_EQ(guarantee.why_unproven, (std::vector<std::string>{"a baseline without privacy"}));
}

TEST(TrustedServer, MustBeDeclared) {
  std::optional<PrivacyTerms> terms;
  EXPECT_THROW(TrustedServer::declared_by(terms, "a test"), UserError);
  terms.emplace();
  EXPECT_THROW(TrustedServer::declared_by(terms, "a test"), UserError);
  terms->observer = Observer::kClients;
  TrustedServer::declared_by(terms, "a test");
}

TEST(BoundedSum, AddsAndStartsAnew) {
  PrivacyTerms terms;
  terms.observer = Observer::kPublic;
  const TrustedServer server = TrustedServer::declared_by(terms, "a test");
  const Neighbours clients{Adjacency::kAddRemove, Unit::kClient};
  Ledger ledger;
  BoundedSum sum({{"x", at::full({2}, 9.0)}}, {{"g", 1, 2, 10.0}});
  const auto add = [&](double value, int64_t client) {
    sum.add(
        Channel::to_trusted_server("update", server).hand_over({.ledger = ledger, .round = 1, .client = client}, [&] {
          return clip_whole(Contribution({{"x", at::full({2}, value)}}), {{"g", 1, 10.0}}, clients);
        }));
  };
  add(1.0, 0);
  add(2.0, 1);
  EXPECT_EQ(sum.count(), 2);
  const auto total = [](const Bounded& bounded) { return Access::values(bounded)[0].value.sum().item<double>(); };
  EXPECT_EQ(total(sum.take()), 6.0);
  EXPECT_EQ(total(sum.take()), 0.0) << "a round in which nobody took part";
  add(5.0, 2);
  EXPECT_EQ(total(sum.take()), 10.0);
}

}  // namespace
}  // namespace sotto::privacy

#include "privacy/channel.h"

#include "privacy/ledger.h"

#include <ATen/ATen.h>

#include <gtest/gtest.h>

namespace sotto::privacy {
namespace {

constexpr Neighbours kRecordAdded{Adjacency::kAddRemove, Unit::kRecord};

Bounded zeros() {
  return clip_whole(Contribution({{"x", at::zeros({64})}}), {{"g", 1, 0.5}}, kRecordAdded);
}

Channel channel(const std::string& what, double multiplier = 2.0) {
  return Channel::gaussian(what, Observer::kServer, GroupwiseGaussian::calibrated(multiplier, zeros().groups()),
                           kRecordAdded);
}

PrivacyTerms terms(double epsilon) {
  PrivacyTerms options;
  options.epsilon = epsilon;
  options.delta = 1e-5;
  options.adjacency = Adjacency::kAddRemove;
  return options;
}

TEST(Channel, WritesTheRowThatItAnnounces) {
  Ledger ledger;
  const Channel announced =
      channel("model").times(3, "once per participation").claiming({.by = kClaimEach, .epsilon = 1});
  announced.release({.ledger = ledger, .round = 2, .client = 5}, zeros);
  Event expected = announced.terms();
  expected.round = 2;
  expected.client = 5;
  expected.generator = "replay";
  ASSERT_EQ(ledger.events().size(), 1U);
  EXPECT_EQ(ledger.events().front(), expected);
  EXPECT_TRUE(announced.makes(ledger.events().front()));
  EXPECT_FALSE(channel("prototypes").makes(ledger.events().front()));
}

TEST(Channel, AsksBeforeAnythingIsComputed) {
  Ledger ledger;
  ledger.agree(terms(0.01), HeldTo::kProven);
  bool computed = false;
  EXPECT_THROW(channel("model").release({.ledger = ledger}, [&] { return computed = true, zeros(); }), BudgetSpent);
  EXPECT_FALSE(computed);
  EXPECT_TRUE(ledger.events().empty());
}

TEST(Channel, IsPaidForByEveryClientThatItIsMadeFor) {
  Ledger ledger;
  const std::vector<int64_t> cohort = {3, 7};
  const ReleaseContext context{.ledger = ledger, .round = 1, .client = kEveryone};
  EXPECT_TRUE(channel("model").release_for(cohort, context, zeros).has_value());
  EXPECT_EQ(ledger.tallies("server").size(), 2U);
  EXPECT_FALSE(channel("model").release_for({}, context, zeros).has_value());
  EXPECT_EQ(ledger.events().size(), 2U);
}

TEST(Channel, TwoReleasesOfOneRoundDrawDifferentNoise) {
  Ledger ledger;
  const ReleaseContext context{.ledger = ledger, .round = 1, .client = 2, .seed = 9};
  const at::Tensor first = channel("model").release(context, zeros).values()[0].value;
  EXPECT_FALSE(at::equal(first, channel("prototypes").release(context, zeros).values()[0].value));
  EXPECT_EQ(ledger.events().size(), 2U);
}

// Whatever the second value is, the difference of the two is free of noise.
TEST(ChannelDeathTest, ASecondReleaseWithTheSameReplayedNoiseStopsTheProgram) {
  Ledger ledger;
  const ReleaseContext context{.ledger = ledger, .round = 1, .client = 2, .seed = 9};
  channel("model").release(context, zeros);
  EXPECT_DEATH(channel("model").release(context, zeros), "drawn_once");
  const ReleaseContext other{.ledger = ledger, .round = 1, .client = 2, .seed = 10};
  channel("model").release(other, zeros);  // as a trial of an audit
  const ReleaseContext later{.ledger = ledger, .round = 2, .client = 2, .seed = 9};
  channel("model").release(later, zeros);
  const ReleaseContext secure{.ledger = ledger, .round = 3, .client = 2, .generator = Generator::kSecure};
  channel("model").release(secure, zeros);
  channel("model").release(secure, zeros);
  EXPECT_EQ(ledger.events().size(), 4U) << "paid for twice";
}

// No reason would read as nothing to count.
TEST(ChannelDeathTest, WhatIsUnprovenStaysSo) {
  EXPECT_DEATH(Channel::in_the_clear("model", ""), "reason");
  EXPECT_EQ(Channel::in_the_clear("model", "as it is").unproven("").terms().why_unproven, "as it is");
}

// Under two names for the observer they are two releases, but their replayed noise would be one.
TEST(ChannelDeathTest, ASharedNoiseStreamStopsTheProgram) {
  Ledger ledger;
  const ReleaseContext context{.ledger = ledger, .round = 1, .client = 2};
  const auto to = [](Observer observer) {
    return Channel::gaussian("model", observer, GroupwiseGaussian::calibrated(2.0, zeros().groups()), kRecordAdded);
  };
  to(Observer::kServer).release(context, zeros);
  EXPECT_DEATH(to(Observer::kClients).release(context, zeros), "drawn_once");
  const ReleaseContext next{.ledger = ledger, .round = 2, .client = 2};
  to(Observer::kClients).release(next, zeros);
}

}  // namespace
}  // namespace sotto::privacy

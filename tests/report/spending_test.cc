#include "report/spending.h"

#include "../support/expect_user_error.h"
#include "report/budget_board.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace sotto::report {
namespace {

using nlohmann::json;
using privacy::Event;

constexpr double kDelta = 1e-5;

Event gaussian(int64_t round, int64_t client, double multiplier) {
  return {.round = round,
          .client = client,
          .observer = "server",
          .what = "model",
          .mechanism = privacy::kGaussianMechanism,
          .noise_scale = multiplier,
          .sensitivity = 1.0,
          .generator = "replay"};
}

Event in_the_clear(int64_t round, int64_t client) {
  return {.round = round,
          .client = client,
          .observer = "server",
          .what = "model",
          .mechanism = privacy::kClearMechanism,
          .why_unproven = "nothing is noised"};
}

config::RunSpec spec_with(int64_t clients, std::vector<double> budgets) {
  config::RunSpec spec;
  spec.data.clients = clients;
  spec.privacy.emplace();
  spec.privacy->epsilon = budgets.front();
  spec.privacy->delta = kDelta;
  spec.privacy->adjacency = privacy::Adjacency::kReplace;
  spec.privacy->budgets = std::move(budgets);
  return spec;
}

double proven(double multiplier, int64_t times) {
  privacy::Tally tally;
  tally.add(gaussian(1, 0, multiplier), times);
  return tally.proven(kDelta);
}

TEST(Spending, IsWhatTheRowsAddUpToAfterEveryRound) {
  // Client 0 and 2 release every round, client 1 only in the second.
  std::vector<Event> events;
  for (int64_t round = 1; round <= 3; ++round) {
    events.push_back(gaussian(round, 0, 5.0));
    if (round == 2) events.push_back(gaussian(round, 1, 5.0));
    events.push_back(gaussian(round, 2, 5.0));
  }
  privacy::GuaranteeCache cache;
  const json views = spending_over_time(spec_with(4, {4.0}), events, cache);
  ASSERT_EQ(views.size(), 1U) << "everybody sees the same";
  EXPECT_EQ(views[0]["rounds"], json({1, 2, 3}));
  const json& curves = views[0]["curves"];
  ASSERT_EQ(curves.size(), 3U) << "clients with equal histories share a curve";
  EXPECT_EQ(curves[0]["clients"], json({0, 2}));
  EXPECT_EQ(curves[0]["proven"], json({proven(5, 1), proven(5, 2), proven(5, 3)}));
  EXPECT_EQ(curves[1]["clients"], json({1}));
  EXPECT_EQ(curves[1]["proven"], json({0.0, proven(5, 1), proven(5, 1)}));
  EXPECT_EQ(curves[2]["clients"], json({3}));
  EXPECT_EQ(curves[2]["proven"], json({0.0, 0.0, 0.0}));
}

TEST(Spending, KeepsObserversAndBudgetsApart) {
  std::vector<Event> events;
  for (const int64_t client : {0, 1}) {
    Event upload = in_the_clear(1, client);
    upload.mechanism = privacy::kTrustedMechanism;
    events.push_back(upload);
  }
  Event model = gaussian(1, privacy::kEveryone, 3.0);
  model.observer = "clients";
  events.push_back(model);
  privacy::GuaranteeCache cache;
  const json views = spending_over_time(spec_with(2, {1.0, 2.0}), events, cache);
  ASSERT_EQ(views.size(), 2U);
  EXPECT_EQ(views[0]["observers"], json({"server"}));
  EXPECT_EQ(views[0]["curves"][0]["proven"], json({nullptr})) << "infinite is null";
  EXPECT_EQ(views[1]["observers"], json({"clients", "public"}));
  ASSERT_EQ(views[1]["curves"].size(), 2U) << "one for each budget";
  EXPECT_EQ(views[1]["curves"][1]["budget"], 2.0);
  EXPECT_EQ(views[1]["curves"][1]["proven"], json({proven(3, 1)})) << "what is released of everyone counts for each";
}

TEST(Spending, OfALongRunIsSampledAndEndsWithItsLastRound) {
  std::vector<Event> events;
  for (int64_t round = 1; round <= 1000; ++round) events.push_back(gaussian(round, 0, 50.0));
  privacy::GuaranteeCache cache;
  const json view = spending_over_time(spec_with(1, {8.0}), events, cache)[0];
  EXPECT_LE(view["rounds"].size(), 64U);
  EXPECT_GE(view["rounds"].size(), 30U);
  EXPECT_EQ(view["rounds"].back(), 1000);
  EXPECT_EQ(view["curves"][0]["proven"].back(), proven(50, 1000));
}

TEST(Spending, OfNothingIsNothing) {
  privacy::GuaranteeCache cache;
  const json view = spending_over_time(spec_with(2, {1.0}), {}, cache)[0];
  EXPECT_EQ(view["rounds"], json::array());
  EXPECT_EQ(noise_by_group({}), json::array());
  EXPECT_EQ(release_kinds({}), json::array());
}

TEST(Noise, IsThatOfEachClientsLastRelease) {
  const auto with_noise = [](int64_t round, int64_t client, double stddev) {
    Event event = gaussian(round, client, 2.0);
    event.parameters =
        json{{"groups", {{{"group", "g"}, {"coordinates", 9}, {"sensitivity", 0.5}, {"stddev", stddev}}}}}.dump();
    return event;
  };
  const json rows = noise_by_group({with_noise(1, 0, 100.0), with_noise(2, 0, 1.0), with_noise(2, 1, 3.0)});
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0]["coordinates"], 9);
  EXPECT_EQ(rows[0]["stddev"], json({{"min", 1.0}, {"max", 3.0}}));
}

TEST(BudgetBoard, TellsHowManyMoreRoundsFit) {
  // The most rounds of this noise that budget 2 allows, by trying them all.
  int64_t most = 0;
  while (proven(4.0, most + 1) <= 2.0) ++most;
  ASSERT_GT(most, 3);
  const std::vector<Event> events = {gaussian(1, 0, 4.0), gaussian(2, 0, 4.0)};
  privacy::GuaranteeCache cache;
  const json rows = budget_board(spec_with(2, {2.0}), events, events, cache);
  EXPECT_EQ(rows[0]["spent"], proven(4.0, 2));
  EXPECT_EQ(rows[0]["left"], 2.0 - proven(4.0, 2));
  EXPECT_EQ(rows[0]["rounds"], most - 2);
  EXPECT_EQ(rows[1]["rounds"], most) << "a client that has released nothing pays what its neighbour did";
}

TEST(BudgetBoard, PricesRoundsLikeThoseOfAnotherRun) {
  int64_t most = 0;
  while (true) {
    privacy::Tally tally;
    tally.add(gaussian(1, 0, 4.0));
    tally.add(gaussian(1, 0, 9.0), most + 1);
    if (tally.proven(kDelta) > 2.0) break;
    ++most;
  }
  privacy::GuaranteeCache cache;
  const json rows = budget_board(spec_with(1, {2.0}), {gaussian(1, 0, 4.0)}, {gaussian(7, 0, 9.0)}, cache);
  EXPECT_EQ(rows[0]["rounds"], most);
  Event other = gaussian(1, 0, 9.0);
  other.neighbours.unit = privacy::Unit::kClient;
  EXPECT_USER_ERROR(budget_board(spec_with(1, {2.0}), {gaussian(1, 0, 4.0)}, {other}, cache), "different things");
}

TEST(BudgetBoard, SaysWhyThereIsNoCount) {
  privacy::GuaranteeCache cache;
  const std::vector<Event> clear = {in_the_clear(1, 0)};
  EXPECT_EQ(budget_board(spec_with(1, {2.0}), clear, clear, cache)[0]["rounds"], nullptr);
  EXPECT_THAT(budget_board(spec_with(1, {2.0}), clear, clear, cache)[0]["why"].get<std::string>(),
              ::testing::HasSubstr("without noise"));
  config::RunSpec none = spec_with(1, {2.0});
  none.privacy.reset();
  EXPECT_EQ(budget_board(none, clear, clear, cache)[0]["budget"], nullptr);
  EXPECT_EQ(budget_board(spec_with(1, {2.0}), {}, {}, cache)[0]["rounds"], nullptr);
}

TEST(BudgetBoard, HoldsAPapersVariantToItsClaim) {
  Event event = gaussian(1, 0, 0.5);
  event.claim = {.by = privacy::kClaimEach, .epsilon = 0.1};
  config::RunSpec spec = spec_with(1, {1.0});
  spec.variant = methods::Variant::kPaper;
  privacy::GuaranteeCache cache;
  EXPECT_EQ(budget_board(spec, {event}, {event}, cache)[0]["rounds"], 9);
}

}  // namespace
}  // namespace sotto::report

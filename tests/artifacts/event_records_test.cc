#include "artifacts/event_records.h"

#include "../support/event_reader.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace sotto::artifacts {
namespace {

using nlohmann::json;

// RFC 3720, B.4.
TEST(Crc32c, GivesThePublishedValues) {
  for (uint32_t (*crc)(std::string_view) : {&crc32c, &slow_crc32c}) {
    EXPECT_EQ(crc("123456789"), 0xE3069283U);
    EXPECT_EQ(crc(std::string(32, '\0')), 0x8A9136AAU);
    EXPECT_EQ(crc(std::string(32, '\xFF')), 0x62A8AB43U);
    EXPECT_EQ(crc(""), 0U);
  }
}

json round_line() {
  return json::parse(R"({"round": 7, "cohort": 3, "uploads": 2, "samples": 90, "train_loss": 0.25, "seconds": 1.5,
    "evaluation_seconds": 0.5, "diverged": [], "abstained": [2],
    "evaluation": {"accuracy": {"mean": 0.5, "std": 0.1, "worst": 0.0,
                                "per_client": {"0": 0.0, "1": 1.0, "2": 0.5, "10": null}},
                   "accuracy_global": null, "auroc_global": 0.75,
                   "accuracy_per_domain": {"sketch": 0.4, "photo": null}}})");
}

TEST(EventRecords, HoldWhatTheRoundHolds) {
  const json line = round_line();
  const std::string file =
      first_event_record(1000) + round_event_record({.line = line, .wall_time = 1002, .spent = {1, 2, {}}});
  const auto events = read_events(file);
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0].file_version, "brain.Event:2");
  EXPECT_EQ(events[0].wall_time, 1000);
  EXPECT_EQ(events[1].wall_time, 1002);
  EXPECT_EQ(events[1].step, 7);
  const std::map<std::string, float> expected = {{"loss/train", 0.25F},
                                                 {"round/seconds", 1.5F},
                                                 {"round/evaluation_seconds", 0.5F},
                                                 {"round/uploads", 2},
                                                 {"round/abstained", 1},
                                                 {"round/diverged", 0},
                                                 {"epsilon/claimed", 1},
                                                 {"epsilon/proven", 2},
                                                 {"accuracy/mean", 0.5F},
                                                 {"accuracy/std", 0.1F},
                                                 {"accuracy/worst", 0},
                                                 {"auroc/global", 0.75F},
                                                 {"accuracy_per_domain/sketch", 0.4F}};
  EXPECT_EQ(events[1].scalars, expected) << "what is null has no point";
}

TEST(EventRecords, AHistogramCountsEveryClientOnce) {
  const auto histogram =
      read_events(round_event_record({.line = round_line(), .wall_time = 1}))[0].histograms.at("accuracy/clients");
  EXPECT_EQ(histogram.num, 3);
  EXPECT_EQ(histogram.min, 0);
  EXPECT_EQ(histogram.max, 1);
  EXPECT_EQ(histogram.sum, 1.5);
  EXPECT_EQ(histogram.sum_squares, 1.25);
  ASSERT_EQ(histogram.limits.size(), histogram.counts.size());
  double counted = 0;
  for (size_t i = 0; i < histogram.limits.size(); ++i) {
    EXPECT_GT(histogram.limits[i], i == 0 ? 0.0 : histogram.limits[i - 1]);
    counted += histogram.counts[i];
  }
  EXPECT_EQ(counted, 3);
  EXPECT_EQ(histogram.counts.front(), 1);
  EXPECT_EQ(histogram.counts.back(), 1);
  EXPECT_EQ(histogram.limits.back(), 1.0);
}

TEST(EventRecords, ClientsHaveTagsOfTheirOwnIfAskedFor) {
  const json line = round_line();
  const auto without = read_events(round_event_record({.line = line, .wall_time = 1}))[0].scalars;
  const auto with = read_events(round_event_record({.line = line, .wall_time = 1, .per_client = true}))[0].scalars;
  EXPECT_FALSE(without.contains("accuracy_of_client/1"));
  EXPECT_EQ(with.at("accuracy_of_client/1"), 1.0F);
  EXPECT_FALSE(with.contains("accuracy_of_client/10")) << "not evaluated";
  EXPECT_EQ(with.size(), without.size() + 3);
}

TEST(EventRecords, NoGuaranteeIsNoPoint) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  json line = round_line();
  line.erase("evaluation");
  line["train_loss"] = nullptr;
  const auto event =
      read_events(round_event_record({.line = line, .wall_time = 1, .spent = {kInfinity, kInfinity, {}}}))[0];
  EXPECT_FALSE(event.scalars.contains("epsilon/proven"));
  EXPECT_FALSE(event.scalars.contains("loss/train"));
  EXPECT_TRUE(event.histograms.empty());
}

TEST(EventReader, NoticesEveryFlippedBit) {
  const std::string record = first_event_record(1);
  for (size_t i = 0; i < 8 * record.size(); ++i) {
    std::string damaged = record;
    damaged[i / 8] = static_cast<char>(damaged[i / 8] ^ (1 << i % 8));
    EXPECT_THROW(read_events(damaged), std::runtime_error) << "bit " << i;
  }
  EXPECT_THROW(read_events(record.substr(0, record.size() - 1)), std::runtime_error);
}

}  // namespace
}  // namespace sotto::artifacts

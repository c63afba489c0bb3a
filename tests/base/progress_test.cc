#include "base/progress.h"

#include "base/log.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>

namespace sotto {
namespace {

TEST(FormatDuration, ReadsLikeSpeech) {
  EXPECT_EQ(format_duration(7.6), "8 s");
  EXPECT_EQ(format_duration(125), "2 min 05 s");
  EXPECT_EQ(format_duration(12000), "3 h 20 min");
}

TEST(Progress, SaysNothingAboutQuickWork) {
  testing::internal::CaptureStderr();
  {
    Progress progress("quick", 10);
    for (int i = 0; i < 10; ++i) progress.advance();
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(Progress, BarsOfSeveralThreadsMayEndInAnyOrder) {
  testing::internal::CaptureStderr();
  auto first = std::make_unique<Progress>("first", 2);
  std::unique_ptr<Progress> second;
  std::thread([&] { second = std::make_unique<Progress>("second", 2); }).join();
  first->advance();
  second->advance();
  first.reset();
  second->advance();
  second.reset();
  info("after");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "after\n");
}

TEST(Log, QuietDropsInformationButNotWarnings) {
  testing::internal::CaptureStderr();
  set_log_level(LogLevel::kQuiet);
  info("hidden {}", 1);
  warn("shown {}", 2);
  set_log_level(LogLevel::kNormal);
  info("visible {}", 3);
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_EQ(text.find("hidden"), std::string::npos);
  EXPECT_NE(text.find("warning: shown 2"), std::string::npos);
  EXPECT_NE(text.find("visible 3"), std::string::npos);
}

}  // namespace
}  // namespace sotto

// Power cuts behind every step that a home or a server asks of its disk, with all, some or nothing of what was not
// synced gone.
#include "artifacts/run_directory.h"
#include "at_home.h"
#include "base/interrupt.h"
#include "recorded_disk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <map>
#include <thread>

namespace sotto::serve {
namespace {

using test::Arrived;
using test::DiskRecorder;

constexpr int64_t kRounds = 3;
constexpr auto kCases = {Arrived::kNothing, Arrived::kBytes, Arrived::kNames, Arrived::kAll, Arrived::kSome};

// Noise that is drawn twice is never the same twice.
std::string config(int64_t clients) {
  return fmt::format(
      "rounds = {}\nseed = 7\n[data]\nclients = {}\n[federation]\nbatch = 16\nlr = 0.1\n[method]\nname = "
      "\"ldp-fedavg\"\n[privacy]\nepsilon = 8\ndelta = 1e-3\nadjacency = \"zero-out\"\nnoise = \"secure\"\n",
      kRounds, clients);
}

std::string place(const std::vector<test::DiskStep>& steps, size_t count, Arrived arrived) {
  return fmt::format("{} of {} steps, case {}; the last is {} {}", count, steps.size(), static_cast<int>(arrived),
                     count == 0 ? -1 : static_cast<int>(steps[count - 1].kind),
                     count == 0 ? "" : steps[count - 1].path);
}

// What a home let out of its hands, and after how many steps.
struct Released {
  size_t step = 0;
  std::string digest;
};

class PowerCutAtHome : public ::testing::Test {
 protected:
  PowerCutAtHome() : setup_(federation::small_setup(config(2))), plan_(plan_of(setup_)) {}

  methods::Broadcast before(int64_t round) {
    methods::Broadcast broadcast = setup_.method().make_server(setup_.public_context())->open();
    broadcast.round = round - 1;
    return broadcast;
  }

  // A home's whole life, with a restart in the middle.
  void live() {
    const fs::path home = folder_ / "home";
    { const HomeOf made(folder_ / "before", setup_, plan_, 0); }
    // As its owner made it: a policy and nothing else.
    for (const auto& entry : fs::directory_iterator(folder_ / "before")) {
      if (entry.path().filename() != "policy.toml") fs::remove_all(entry.path());
    }
    fs::copy(folder_ / "before", home);
    const DiskRecorder recorder(home);
    HomeOf own(home, setup_, plan_, 0);
    for (int64_t round = 1; round <= kRounds; ++round) {
      const member::Outcome outcome = own.member().work(before(round));
      ASSERT_TRUE(outcome.upload);
      released_[round] = {recorder.steps(), outcome.upload->digest};
      if (round == 2) own.open();
      own.member().settle(round - 1);
      settled_[round - 1] = recorder.steps();
    }
    steps_ = recorder.all();
  }

  // What is wrong with the home after a power cut; "" if nothing is.
  std::string complaint(size_t count, Arrived arrived) {
    const fs::path left = folder_ / "left";
    test::rebuild_after_power_cut(steps_, count, arrived, count, folder_ / "home", folder_ / "before", left);
    HomeOf home(left, setup_, plan_, 0);
    home.home().ledger().verify_chain();
    std::map<int64_t, bool> paid;
    for (const privacy::Event& event : home.home().ledger().events()) paid[event.round] = true;
    int64_t last = 0;
    for (const auto& [round, what] : released_) {
      if (what.step > count) continue;
      if (!paid[round]) return fmt::format("round {} was released, and is not in the ledger", round);
      home.member().check_seen(round, what.digest);
      last = round;
    }
    const int64_t worked = home.member().last_round();
    if (worked < last || home.member().participations() < last) return "a round was forgotten";
    if (last == 0) return "";
    if (worked == last) {
      const member::Outcome again = home.member().work(before(last));
      if (again.upload && again.upload->digest != released_[last].digest) return "another upload";
      if (!again.upload && !settled_.contains(last)) return "an upload that nobody has was lost";
    }
    // It goes on, and pays for what is new.
    if (worked == kRounds) return "";
    const int64_t rows = home.home().ledger().rows();
    if (!home.member().work(before(worked + 1)).upload) return "it does not go on";
    return home.home().ledger().rows() == rows + 1 ? "" : "it goes on without paying";
  }

  std::string complaint_or_error(size_t count, Arrived arrived) {
    try {
      return complaint(count, arrived);
    } catch (const std::exception& error) {
      return error.what();
    }
  }

  test::TempFolder folder_;
  federation::Setup setup_;
  federation::FederationPlan plan_;
  std::vector<test::DiskStep> steps_;
  std::map<int64_t, Released> released_;
  std::map<int64_t, size_t> settled_;
};

TEST_F(PowerCutAtHome, NothingIsReleasedTwiceAndNothingIsForgotten) {
  ASSERT_NO_FATAL_FAILURE(live());
  ASSERT_GT(steps_.size(), 50u) << "what was recorded is not all";
  for (size_t count = 0; count <= steps_.size(); ++count) {
    for (const Arrived arrived : kCases) {
      ASSERT_EQ(complaint_or_error(count, arrived), "") << place(steps_, count, arrived);
    }
  }
}

// That the test above can fail.
TEST_F(PowerCutAtHome, WouldBeNoticedIfNothingWereSynced) {
  ASSERT_NO_FATAL_FAILURE(live());
  for (test::DiskStep& step : steps_) {
    if (step.kind == test::DiskStep::Kind::kSync) step = {.kind = test::DiskStep::Kind::kSyncFolder, .path = ""};
  }
  EXPECT_EQ(complaint_or_error(steps_.size(), Arrived::kAll), "");
  EXPECT_NE(complaint_or_error(steps_.size(), Arrived::kNothing), "");
}

// ---- the server

struct Kept {
  member::SealedUpload upload;
  std::string bytes;
};

class PowerCutAtTheServer : public ::testing::Test {
 protected:
  static constexpr int64_t kClients = 2;
  PowerCutAtTheServer() : setup_(federation::small_setup(config(kClients))), plan_(plan_of(setup_)) {}

  static void join(Hub& hub) {
    for (int64_t i = 0; i < kClients; ++i) hub.join(fmt::format("home-{}", i), fmt::format("print-{}", i));
  }

  // Serves until the end. `act` gets work for a client, and hands something in.
  template <typename Act>
  std::string serve(const fs::path& folder, const Act& act) {
    Server server(folder, plan_, [this] { return stop_.load(); });
    join(server.hub());
    std::string failure;
    std::thread rounds([&] {
      try {
        while (server.next_round()) {
        }
        server.finish();
      } catch (const std::exception& error) {
        failure = error.what();
        stop_ = true;
      }
    });
    std::string final_model;
    while (final_model.empty() && !stop_) {
      for (int64_t client = 0; client < kClients; ++client) {
        const Work work = server.hub().work_for(client);
        if (work.kind == Work::Kind::kOver) final_model = work.digest;
        if (work.kind != Work::Kind::kNothing) act(server.hub(), client, work);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    rounds.join();
    if (!failure.empty()) throw std::runtime_error(failure);
    return final_model;
  }

  void live() {
    std::vector<std::unique_ptr<HomeOf>> homes;
    for (int64_t i = 0; i < kClients; ++i) {
      homes.push_back(std::make_unique<HomeOf>(folder_ / fmt::format("home-{}", i), setup_, plan_, i));
    }
    // It gets its name when it is whole.
    { const artifacts::RunDirectory made(folder_ / "server", plan_.setup().spec(), false); }
    fs::copy(folder_ / "server", folder_ / "before", fs::copy_options::recursive);
    const DiskRecorder recorder(folder_ / "server");
    expected_ = serve(folder_ / "server", [&](Hub& hub, int64_t client, const Work& work) {
      if (!durable_.contains(work.durable_round)) durable_[work.durable_round] = recorder.steps();
      if (work.kind != Work::Kind::kRound) return;
      const member::Outcome outcome = homes[static_cast<size_t>(client)]->member().work(read_broadcast(hub, work));
      kept_[{work.round, client}] = {*outcome.upload, read_file(outcome.upload->file)};
      EXPECT_EQ(hand_in(hub, client, *outcome.upload, 500).verdict, Verdict::kStored);
    });
    steps_ = recorder.all();
  }

  // Homes hand in what they have sealed, and have nothing more of rounds that they were told are durable.
  void check(size_t count, Arrived arrived, uint64_t seed) {
    const fs::path left = folder_ / "left";
    test::rebuild_after_power_cut(steps_, count, arrived, seed, folder_ / "server", folder_ / "before", left);
    int64_t durable = 0;
    for (const auto& [round, step] : durable_) durable = step <= count ? std::max(durable, round) : durable;
    const std::string model = serve(left, [&](Hub& hub, int64_t client, const Work& work) {
      if (work.kind != Work::Kind::kRound) return;
      if (work.round <= durable) {
        ADD_FAILURE() << "round " << work.round << " is asked for again, and round " << durable << " was durable";
        stop_ = true;
        return;
      }
      const auto known = kept_.find({work.round, client});
      ASSERT_NE(known, kept_.end());
      const fs::path file = folder_ / "sending";
      std::ofstream(file, std::ios::binary) << known->second.bytes;
      member::SealedUpload upload = known->second.upload;
      upload.file = file;
      const Answer answer = hand_in(hub, client, upload, 500);
      EXPECT_EQ(answer.verdict, Verdict::kStored) << answer.reason;
    });
    EXPECT_EQ(model, expected_) << "another model";
  }

  test::TempFolder folder_;
  federation::Setup setup_;
  federation::FederationPlan plan_;
  std::atomic<bool> stop_ = false;
  std::string expected_;
  std::vector<test::DiskStep> steps_;
  std::map<int64_t, size_t> durable_;  // when clients could hear of it at the earliest
  std::map<std::pair<int64_t, int64_t>, Kept> kept_;
};

TEST_F(PowerCutAtTheServer, TheSameModelComesOutOfIt) {
  ASSERT_NO_FATAL_FAILURE(live());
  ASSERT_GT(steps_.size(), 50u) << "what was recorded is not all";
  // One case behind each step, in turn.
  for (size_t count = 0; count <= steps_.size(); ++count) {
    const auto arrived = *(kCases.begin() + static_cast<int64_t>(count % kCases.size()));
    SCOPED_TRACE(place(steps_, count, arrived));
    try {
      check(count, arrived, count);
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace sotto::serve

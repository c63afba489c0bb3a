#include "transport/over_ranks.h"

#include "../federation/small_run.h"
#include "../support/temp_folder.h"
#include "base/files.h"
#include "methods/catalogue.h"
#include "thread_ranks.h"
#include "transport/start_together.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <set>

namespace sotto::transport {
namespace {

using federation::Checkpoint;
using federation::ClientScore;
using federation::RoundRecord;
using federation::Setup;
using federation::small_setup;

// Those that mpirun started this test with, if it did; otherwise threads.
Ranks* started_with() {
  static const std::shared_ptr<Ranks> ranks = open_ranks();
  return ranks.get();
}

struct Goodbye : ::testing::Environment {
  void TearDown() override {
    if (started_with() != nullptr) started_with()->finish();
  }
};
[[maybe_unused]] const auto* const goodbye = ::testing::AddGlobalTestEnvironment(new Goodbye);

void over_ranks(int size, const std::function<void(Ranks&)>& first, const std::function<void(Ranks&)>& others) {
  Ranks* const mpi = started_with();
  if (mpi == nullptr) return run_ranks(size, first, others);
  mpi->rank() == 0 ? first(*mpi) : others(*mpi);
}

bool is_first() {
  return started_with() == nullptr || started_with()->rank() == 0;
}

std::string config(const std::string& method, const std::string& more = "", int rounds = 3) {
  return fmt::format("rounds = {}\n{}\n[data]\nclients = 7\n[federation]\ncohort = 4\nbatch = 8\n", rounds, more) +
         federation::step_of(method) + federation::privacy_terms(method) + "[method]\nname = \"" + method + "\"\n" +
         federation::needed_options(method);
}

using MakeSetup = std::function<Setup()>;

struct Result {
  NamedTensors broadcast;
  std::vector<RoundRecord> rounds;
  std::vector<privacy::Event> rows;
};

struct Options {
  int threads = 1;
  fs::path folder = {};  // for states
  bool disk = false;
  std::optional<Checkpoint> resume = std::nullopt;
  int64_t stop_after = 1000;  // rounds
};

std::unique_ptr<federation::StateStore> store(const Options& options, const Ranks* ranks) {
  const federation::StatePart part =
      ranks == nullptr ? federation::StatePart{} : federation::StatePart{ranks->rank(), ranks->size()};
  return options.disk ? federation::make_disk_store(options.folder, part)
                      : federation::make_memory_store(options.folder, part);
}

// At rank 0, or alone.
Result run_first(const Setup& setup, privacy::Ledger& ledger, Ranks* ranks, const Options& options,
                 std::optional<Checkpoint>* last = nullptr) {
  const auto states = store(options, ranks);
  Simulation simulation(setup, *states, ledger,
                        {.threads = options.threads, .resume = options.resume, .watcher = {}, .ranks = ranks});
  Result result;
  while (const auto record = simulation.next_round()) {
    result.rounds.push_back(*record);
    simulation.commit_states();
    if (record->round == options.stop_after) break;
  }
  result.broadcast = clone(simulation.broadcast().values);
  result.rows = ledger.events();
  if (last != nullptr) *last = simulation.checkpoint();
  return result;
}

Result run_over(int size, const Setup& setup, privacy::Ledger& ledger, const Options& options = {},
                std::optional<Checkpoint>* last = nullptr) {
  Result result;
  over_ranks(
      size, [&](Ranks& ranks) { result = run_first(setup, ledger, &ranks, options, last); },
      [&](Ranks& ranks) {
        work_for_rank_0(
            setup, [&] { return store(options, &ranks); }, ranks, options.threads);
      });
  return result;
}

bool equal_or_both_undefined(double a, double b) {
  return a == b || (std::isnan(a) && std::isnan(b));
}

std::map<std::string, double> without_times(std::map<std::string, double> measures) {
  std::erase_if(measures, [](const auto& measure) { return measure.first.ends_with("_seconds"); });
  return measures;
}

void expect_same(const Result& a, const Result& b) {
  ASSERT_EQ(a.broadcast.size(), b.broadcast.size());
  for (size_t i = 0; i < a.broadcast.size(); ++i) {
    EXPECT_EQ(a.broadcast[i].name, b.broadcast[i].name);
    EXPECT_TRUE(at::equal(a.broadcast[i].value, b.broadcast[i].value)) << a.broadcast[i].name;
  }
  ASSERT_EQ(a.rounds.size(), b.rounds.size());
  for (size_t i = 0; i < a.rounds.size(); ++i) {
    const RoundRecord &x = a.rounds[i], &y = b.rounds[i];
    EXPECT_EQ(x.uploads, y.uploads);
    EXPECT_EQ(x.upload_bytes, y.upload_bytes);
    EXPECT_EQ(x.samples, y.samples);
    EXPECT_TRUE(equal_or_both_undefined(x.noise_norm, y.noise_norm));
    EXPECT_TRUE(equal_or_both_undefined(x.train_loss, y.train_loss));
    EXPECT_EQ(without_times(x.measures), without_times(y.measures));
    EXPECT_EQ(x.diverged, y.diverged);
    EXPECT_EQ(x.abstained, y.abstained);
    ASSERT_EQ(x.evaluation.has_value(), y.evaluation.has_value());
    if (!x.evaluation) continue;
    EXPECT_TRUE(equal_or_both_undefined(x.evaluation->global_accuracy, y.evaluation->global_accuracy));
    EXPECT_TRUE(equal_or_both_undefined(x.evaluation->global_auroc, y.evaluation->global_auroc));
    ASSERT_EQ(x.evaluation->clients.size(), y.evaluation->clients.size());
    for (size_t c = 0; c < x.evaluation->clients.size(); ++c) {
      const ClientScore &s = x.evaluation->clients[c], &t = y.evaluation->clients[c];
      EXPECT_EQ(s.client, t.client);
      EXPECT_EQ(s.records, t.records);
      EXPECT_TRUE(equal_or_both_undefined(s.accuracy, t.accuracy));
      EXPECT_TRUE(equal_or_both_undefined(s.neighbour_accuracy, t.neighbour_accuracy));
      EXPECT_TRUE(equal_or_both_undefined(s.global_test_accuracy, t.global_test_accuracy));
    }
  }
  EXPECT_EQ(a.rows, b.rows);
}

class OverRanksCatalogue : public ::testing::TestWithParam<std::string> {};

TEST_P(OverRanksCatalogue, GivesWhatOneProcessGives) {
  const auto setup = small_setup(config(GetParam()));
  const auto sizes = started_with() != nullptr ? std::vector{started_with()->size()} : std::vector{2, 3};
  privacy::Ledger alone_ledger;
  const Result alone = is_first() ? run_first(setup, alone_ledger, nullptr, {}) : Result{};
  for (const int size : sizes) {
    privacy::Ledger ledger;
    const Result result = run_over(size, setup, ledger, {.threads = 2});
    if (is_first()) expect_same(alone, result);
  }
}

INSTANTIATE_TEST_SUITE_P(Methods, OverRanksCatalogue, ::testing::ValuesIn(methods::method_names()),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

class OverRanksAlone : public ::testing::Test {
 protected:
  void SetUp() override {
    if (started_with() != nullptr) GTEST_SKIP() << "with threads only";
  }
};

TEST_F(OverRanksAlone, LendsClientsSoThatNobodyHasMoreThanItsShare) {
  const auto seats = seat_clients({0, 2, 4, 6, 7, 8}, 2);
  ASSERT_EQ(seats.size(), 6U);
  int64_t at_0 = 0;
  for (const Seat& seat : seats) {
    EXPECT_EQ(seat.home, seat.client % 2);
    at_0 += seat.at == 0 ? 1 : 0;
  }
  EXPECT_EQ(at_0, 3);
  EXPECT_EQ(seats.front().at, 0) << "the last ones are lent";
  for (const Seat& seat : seat_clients({0, 1, 2, 3}, 2)) EXPECT_EQ(seat.at, seat.home);
}

// local-only is all state: what a client learnt elsewhere must come home. Clients 0, 2, 4, 6 live on rank 0 of 2.
TEST_F(OverRanksAlone, BringsTheStatesOfLentClientsHome) {
  const auto setup = small_setup(config("local-only", "", 6));
  std::set<int64_t> lent;
  for (int64_t round = 1; round <= 6; ++round) {
    for (const Seat& seat : seat_clients(federation::sample_cohort(setup.spec(), round), 2)) {
      if (seat.at != seat.home) lent.insert(seat.client);
    }
  }
  ASSERT_FALSE(lent.empty()) << "this seed has no uneven cohort: choose another";
  privacy::Ledger alone, together;
  expect_same(run_first(setup, alone, nullptr, {}), run_over(2, setup, together));
}

TEST_F(OverRanksAlone, GoesOnWithAnotherNumberOfRanks) {
  for (const bool disk : {false, true}) {
    const auto setup = small_setup(config("local-only", "", 6));
    privacy::Ledger alone_ledger, ledger;
    const Result alone = run_first(setup, alone_ledger, nullptr, {});
    const test::TempFolder folder;
    std::optional<Checkpoint> last;
    run_over(3, setup, ledger, {.folder = folder / "state", .disk = disk, .stop_after = 2}, &last);
    run_over(2, setup, ledger, {.folder = folder / "state", .disk = disk, .resume = last, .stop_after = 4}, &last);
    const Result rest =
        run_first(setup, ledger, nullptr, {.folder = folder / "state", .disk = disk, .resume = last}, &last);
    Result expected = alone;
    expected.rounds.erase(expected.rounds.begin(), expected.rounds.begin() + 4);
    expect_same(expected, rest);
  }
}

// A budget that ends in the middle of the run: ranks decide, also those that did not see all of a client's releases.
TEST_F(OverRanksAlone, ClientsAbstainInTheSameRounds) {
  const std::string settings =
      "rounds = 8\n[data]\nclients = 7\n[federation]\ncohort = 4\nbatch = 8\nlr = 0.1\n[privacy]\nepsilon = 8\n"
      "delta = 1e-3\nadjacency = \"zero-out\"\n[method]\nname = \"ldp-fedavg\"\n";
  const auto spec_of = [&](double epsilon) {
    return federation::changed(small_setup(settings), [&](config::RunSpec& spec) { spec.privacy->epsilon = epsilon; });
  };
  const auto generous = spec_of(8);
  const auto last_state_of = [&](int size) {
    privacy::Ledger ledger;
    // Paid already, out of the same budgets: what is left does not last for all rounds.
    ledger.agree(*generous.spec().privacy, privacy::HeldTo::kProven);
    for (int64_t client = 0; client < 7; ++client) {
      privacy::Event event = generous.plan_for(client).front().terms();
      event.client = client;
      event.generator = "replay";
      for (int64_t round = -3; round < 0; ++round) {
        event.round = round;
        ledger.take_over(event);
      }
    }
    return size == 1 ? run_first(generous, ledger, nullptr, {}) : run_over(size, generous, ledger);
  };
  const Result alone = last_state_of(1);
  int64_t abstained = 0;
  for (const RoundRecord& round : alone.rounds) abstained += static_cast<int64_t>(round.abstained.size());
  EXPECT_GT(abstained, 0);
  for (const int size : {2, 3}) expect_same(alone, last_state_of(size));
}

// Rows of rounds that are told one after the other: what any of them cost is known to all ranks.
TEST_F(OverRanksAlone, TellsALongLedgerInParts) {
  const auto setup = small_setup(
      "rounds = 600\n[data]\nclients = 7\n[federation]\ncohort = 4\nbatch = 8\n[privacy]\nepsilon = 8\ndelta = 1e-3\n"
      "adjacency = \"zero-out\"\n[method]\nname = \"ldp-fedavg\"\n");
  privacy::Ledger ledger;
  ledger.agree(*setup.spec().privacy, privacy::HeldTo::kProven);
  for (int64_t client = 0; client < 7; ++client) {
    privacy::Event event = setup.plan_for(client).front().terms();
    event.client = client;
    event.generator = "replay";
    for (event.round = 100; event.round < 500; ++event.round) ledger.take_over(event);
  }
  const Result result = run_over(2, setup, ledger, {.stop_after = 1});
  EXPECT_EQ(result.rounds.front().abstained.size(), 4U) << "nobody has anything left";
}

TEST_F(OverRanksAlone, WhatCannotBeginIsOverForAllRanks) {
  const auto setup = small_setup(config("fedavg"));
  bool began = false;
  run_ranks(2, dismiss, [&](Ranks& ranks) {
    const auto make_states = [&] {
      began = true;
      return federation::make_memory_store({});
    };
    work_for_rank_0(setup, make_states, ranks, 1);
  });
  EXPECT_FALSE(began);
}

// Whoever reads the file while an upload of another rank is looked at finds the row that it rests on.
TEST_F(OverRanksAlone, RowsAreOnDiskBeforeAnUploadIsUsed) {
  const test::TempFolder folder;
  const auto setup = small_setup(config("ldp-fedavg"));
  int64_t seen = 0;
  run_ranks(
      2,
      [&](Ranks& ranks) {
        privacy::Ledger ledger(folder / "ledger.sqlite");
        const auto states = federation::make_memory_store({});
        const auto watch = [&](int64_t round, const federation::Reply& reply) {
          if (!reply.upload) return;
          ++seen;
          const privacy::Ledger on_disk(folder / "ledger.sqlite", privacy::Ledger::Mode::kRead);
          const auto rows = on_disk.events(round, round);
          EXPECT_TRUE(
              std::any_of(rows.begin(), rows.end(), [&](const auto& row) { return row.client == reply.client; }));
        };
        Simulation simulation(setup, *states, ledger, {.threads = 1, .resume = {}, .watcher = watch, .ranks = &ranks});
        while (simulation.next_round()) {
        }
      },
      [&](Ranks& ranks) {
        work_for_rank_0(
            setup, [] { return federation::make_memory_store({}); }, ranks, 1);
      });
  EXPECT_EQ(seen, 12);
}

TEST_F(OverRanksAlone, RefusesARankThatDiffers) {
  const auto start = [](const std::string& at_0, const MakeSetup& elsewhere) {
    std::string refusal;
    bool started = false;
    run_ranks(
        2,
        [&](Ranks& ranks) {
          try {
            start_together(ranks, [&] { return small_setup(at_0); });
          } catch (const UserError& error) {
            refusal = error.what();
          }
        },
        [&](Ranks& ranks) { started = start_together(ranks, elsewhere).has_value(); });
    EXPECT_EQ(started, refusal.empty());
    return refusal;
  };
  const std::string settings = config("fedavg");
  EXPECT_EQ(start(settings, [&] { return small_setup(settings); }), "");
  EXPECT_THAT(start(settings, [&] { return small_setup(config("fedavg", "seed = 9")); }),
              ::testing::HasSubstr("it read another config"));
  EXPECT_THAT(start(settings, [&]() -> federation::Setup { fail_user("there is no dataset 'x'"); }),
              ::testing::HasSubstr("cannot take part: there is no dataset 'x'"));
  EXPECT_THAT(start(settings, [&] { return small_setup(settings).with_records(federation::blobs(240, 77)); }),
              ::testing::HasSubstr("it has other records"));
}

}  // namespace
}  // namespace sotto::transport

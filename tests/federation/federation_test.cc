
#include "base/files.h"
#include "methods/parts/averaging.h"
#include "methods/parts/local_trainer.h"
#include "small_run.h"
#include "transport/inprocess.h"

#include <gtest/gtest.h>

#include <cmath>

namespace sotto::federation {
namespace {

struct Recorded : RunSink {
  void upload(int64_t round, int64_t client, const privacy::Upload&) override { uploads.emplace_back(round, client); }
  void round(const RoundRecord& record) override { rounds.push_back(record); }
  void checkpoint(const Checkpoint& point) override {
    checkpoints.push_back({point.round, {point.round, clone(point.broadcast.values)}, clone(point.server_state)});
  }
  std::vector<std::pair<int64_t, int64_t>> uploads;
  std::vector<RoundRecord> rounds;
  std::vector<Checkpoint> checkpoints;
};

Recorded run(const Setup& setup, int threads = 1) {
  Recorded sink;
  privacy::Ledger ledger;
  const auto states = make_memory_store({});
  run_rounds(setup, *states, ledger, sink, threads);
  return sink;
}

struct Killed : std::exception {};

// Dies when round 3 is about to be checkpointed: its releases are in the ledger, its result is lost.
struct KilledInRound3 : Recorded {
  void checkpoint(const Checkpoint& point) override {
    if (point.round == 3) throw Killed();
    Recorded::checkpoint(point);
  }
};

bool same(const NamedTensors& a, const NamedTensors& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].name != b[i].name || !at::equal(a[i].value, b[i].value)) return false;
  }
  return true;
}

std::string config(const std::string& method, const std::string& more = "") {
  return "rounds = 2\n" + more + "\n[data]\nclients = 6\n[federation]\ncohort = 4\nbatch = 8\n" + step_of(method) +
         privacy_terms(method) + "[method]\nname = \"" + method + "\"\n" + needed_options(method);
}

std::string long_config(const std::string& method, const std::string& more = "") {
  return "rounds = 10\n" + config(method, more).substr(std::string("rounds = 2\n").size());
}

class WholeCatalogue : public ::testing::TestWithParam<std::string> {};

TEST_P(WholeCatalogue, DefaultsRunTwoRoundsAndTheLedgerIsThePlan) {
  const auto setup = small_setup(config(GetParam()));
  Recorded sink;
  privacy::Ledger ledger;
  const auto states = make_memory_store({});
  run_rounds(setup, *states, ledger, sink, 2);
  ASSERT_EQ(sink.rounds.size(), 2U);
  EXPECT_TRUE(sink.rounds.back().evaluation.has_value());

  // Every client's rows are those that were planned for it, kind by kind and number by number.
  for (int64_t client = 0; client < 6; ++client) {
    const methods::ReleasePlan plan = setup.plan_for(client);
    EXPECT_EQ(ledger.kinds().size(), plan.size());
    for (const auto& planned : plan) {
      int64_t made = 0;
      double cost = 0;  // bounds that move, move the noise too; noise that varies costs together what was planned
      for (const auto& event : ledger.events()) {
        if (event.client != client && event.client != privacy::kEveryone) continue;
        if (!planned.makes(event)) continue;
        ++made;
        if (event.sensitivity > 0) cost += std::pow(event.sensitivity / event.noise_scale, 2);
        EXPECT_EQ(event.steps, planned.terms().steps);
        EXPECT_EQ(event.sampling_rate, planned.terms().sampling_rate);
      }
      EXPECT_EQ(made, planned.times()) << planned.terms().what << " of client " << client;
      if (made > 0 && planned.terms().sensitivity > 0) {
        const double each = std::pow(planned.terms().sensitivity / planned.terms().noise_scale, 2);
        EXPECT_NEAR(cost / (each * static_cast<double>(made)), 1.0, 1e-9);
      }
    }
  }
}

TEST_P(WholeCatalogue, KeepsItsBudgetInTheEyesOfTheDeclaredObserver) {
  const auto setup = small_setup(config(GetParam()));
  Recorded sink;
  privacy::Ledger ledger;
  const auto states = make_memory_store({});
  run_rounds(setup, *states, ledger, sink, 2);
  for (const auto& [client, tally] : ledger.tallies(settings::word(setup.spec().privacy->observer))) {
    const privacy::Guarantee spent = tally.guarantee(setup.spec().privacy->delta);
    if (!spent.why_unproven.empty()) continue;
    EXPECT_LE(spent.proven, setup.spec().privacy->epsilon) << "client " << client;
  }
}

TEST_P(WholeCatalogue, ResultsDoNotDependOnTheThreadCount) {
  const auto setup = small_setup(config(GetParam()));
  const Recorded one = run(setup, 1);
  for (const int threads : {2, 3, 5}) {
    const Recorded many = run(setup, threads);
    EXPECT_TRUE(same(one.checkpoints.back().broadcast.values, many.checkpoints.back().broadcast.values));
    const auto& a = one.rounds.back();
    const auto& b = many.rounds.back();
    EXPECT_EQ(a.train_loss, b.train_loss);
    ASSERT_EQ(a.evaluation->clients.size(), b.evaluation->clients.size());
    for (size_t i = 0; i < a.evaluation->clients.size(); ++i) {
      EXPECT_EQ(a.evaluation->clients[i].accuracy, b.evaluation->clients[i].accuracy);
    }
  }
}

TEST_P(WholeCatalogue, AResumedRunEndsWhereAnUnbrokenOneDoes) {
  const fs::path folder = fs::temp_directory_path() / fmt::format("sotto-resume-{}", ::getpid());
  for (const char* where : {"memory", "disk"}) {
    fs::remove_all(folder);
    const auto setup = small_setup(long_config(GetParam()));
    const Recorded whole = run(setup);
    const auto store = [&] { return where[0] == 'd' ? make_disk_store(folder) : make_memory_store(folder); };
    privacy::Ledger ledger;
    KilledInRound3 first;
    {
      const auto states = store();
      EXPECT_THROW(run_rounds(setup, *states, ledger, first, 1), Killed);
    }
    ledger.rehearse();  // another process draws the same noise again
    Recorded second;
    const auto states = store();
    run_rounds(setup, *states, ledger, second, 2, first.checkpoints[1]);
    EXPECT_EQ(second.rounds.front().round, 3);
    EXPECT_TRUE(same(whole.checkpoints.back().broadcast.values, second.checkpoints.back().broadcast.values));
    EXPECT_EQ(whole.rounds.back().train_loss, second.rounds.back().train_loss);
    EXPECT_EQ(whole.rounds.back().evaluation->over(&ClientScore::accuracy).mean,
              second.rounds.back().evaluation->over(&ClientScore::accuracy).mean);
  }
  fs::remove_all(folder);
}

// As a transport between machines does it: every upload becomes bytes and comes back through the one door.
class ThroughBytes : public Transport {
 public:
  ThroughBytes(const Setup& setup, Transport& inner) : setup_(setup), inner_(inner) {}

  void exchange(const std::vector<int64_t>& cohort, const methods::Broadcast& broadcast,
                const std::function<void(Reply&&)>& accept) override {
    const privacy::UploadShape shape = setup_.method().upload_shape(setup_.public_context(), broadcast);
    inner_.exchange(cohort, broadcast, [&](Reply&& reply) {
      if (reply.upload) reply.upload = privacy::decode(privacy::encode(*reply.upload), shape);
      accept(std::move(reply));
    });
  }
  Predictions test(const methods::Broadcast& broadcast) override { return inner_.test(broadcast); }
  void evaluate(const std::vector<int64_t>& clients, const methods::Broadcast& broadcast,
                const std::function<void(ClientScore&&)>& accept) override {
    inner_.evaluate(clients, broadcast, accept);
  }

 private:
  const Setup& setup_;
  Transport& inner_;
};

TEST_P(WholeCatalogue, UploadsAsBytesGiveTheSameModel) {
  const auto setup = small_setup(config(GetParam()));
  const Recorded direct = run(setup, 1);
  const auto states = make_memory_store({});
  privacy::Ledger ledger;
  const HeldOut held_out(setup, evaluated_clients(setup.spec()));
  Workers workers = make_workers(setup, 1);
  const CohortSchedule cohorts(setup.spec());
  transport::InProcess in_process(setup, cohorts, held_out, workers, *states, ledger);
  ThroughBytes through_bytes(setup, in_process);
  Evaluator evaluator(setup, held_out, through_bytes);
  Federation federation(
      setup.published(), [&](int64_t round) { return cohorts.cohort(round); }, through_bytes, &evaluator, ledger);
  while (federation.next_round()) {
  }
  EXPECT_TRUE(same(direct.checkpoints.back().broadcast.values, federation.broadcast().values));
}

std::vector<std::string> method_names() {
  return methods::method_names();
}

INSTANTIATE_TEST_SUITE_P(Methods, WholeCatalogue, ::testing::ValuesIn(method_names()), [](const auto& test) {
  std::string name = test.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST(FedAvg, LearnsTheBlobs) {
  const auto setup = small_setup(long_config("fedavg"));
  const Recorded result = run(setup, 2);
  EXPECT_GT(result.rounds.back().evaluation->global_accuracy, 0.9);
  EXPECT_LT(result.rounds.back().train_loss, result.rounds.front().train_loss);
}

TEST(FedAvg, AveragesByRecordCount) {
  const auto setup = small_setup("rounds = 1\n[data]\nclients = 2\n[method]\nname = \"fedavg\"\n");
  const auto server = methods::make_averaging_server(setup.public_context());
  privacy::Ledger ledger;
  const NamedTensors start = server->open().values;
  const double weights[] = {1.0, 3.0};
  for (int64_t client = 0; client < 2; ++client) {
    NamedTensors values = clone(start);
    for (auto& value : values) value.value.fill_(client == 0 ? 2.0 : 6.0);
    values.push_back({methods::kRecordsName, at::scalar_tensor(weights[client], at::kDouble)});
    server->accept(privacy::Channel::in_the_clear("model", "test")
                       .release_clear({.ledger = ledger, .round = 1, .client = client},
                                      [&] { return privacy::Contribution(std::move(values)); }));
  }
  const auto aggregate = [&](int64_t round) {
    return server->aggregate({{.ledger = ledger, .round = round, .client = privacy::kEveryone}, {}});
  };
  for (const auto& [name, value] : aggregate(1).values) {
    EXPECT_TRUE(at::allclose(value, at::full_like(value, 5.0))) << name;
  }
  EXPECT_TRUE(same(aggregate(2).values, server->open().values)) << "nothing accepted: nothing changes";
}

// Whoever reads the file while an upload is looked at finds the row that it rests on.
TEST(Ledger, HoldsARowOnDiskBeforeTheUploadIsUsed) {
  const fs::path folder = fs::temp_directory_path() / fmt::format("sotto-rows-{}", ::getpid());
  fs::create_directories(folder);
  const auto setup = small_setup(config("ldp-fedavg"));
  const auto states = make_memory_store({});
  int64_t seen = 0;
  {
    privacy::Ledger ledger(folder / "ledger.sqlite");
    const auto watch = [&](int64_t round, const Reply& reply) {
      if (!reply.upload) return;
      ++seen;
      const privacy::Ledger on_disk(folder / "ledger.sqlite", privacy::Ledger::Mode::kRead);
      const auto rows = on_disk.events(round, round);
      EXPECT_TRUE(std::any_of(rows.begin(), rows.end(), [&](const auto& row) { return row.client == reply.client; }));
    };
    transport::Simulation simulation(setup, *states, ledger, {.threads = 2, .watcher = watch});
    while (simulation.next_round()) {
    }
  }
  EXPECT_EQ(seen, 8);
  fs::remove_all(folder);
}

// What the server releases goes to clients with the next round.
TEST(Ledger, HoldsTheServersRowsOnDiskBeforeTheNextRound) {
  const fs::path folder = fs::temp_directory_path() / fmt::format("sotto-server-rows-{}", ::getpid());
  fs::create_directories(folder);
  const auto setup = small_setup(config("dp-fedavg"));
  const auto states = make_memory_store({});
  {
    privacy::Ledger ledger(folder / "ledger.sqlite");
    transport::Simulation simulation(setup, *states, ledger, {.threads = 2});
    while (simulation.next_round()) {
      const privacy::Ledger on_disk(folder / "ledger.sqlite", privacy::Ledger::Mode::kRead);
      EXPECT_EQ(on_disk.rows(), ledger.rows());
    }
    EXPECT_EQ(ledger.kinds().size(), 2U) << "what clients hand over, and what the server makes of it";
  }
  fs::remove_all(folder);
}

TEST(FedProx, WithoutItsTermIsFedAvg) {
  const Recorded fedavg = run(small_setup(config("fedavg")));
  const Recorded zero = run(small_setup(config("fedprox") + "mu = 0\n"));
  const Recorded strong = run(small_setup(config("fedprox") + "mu = 5\n"));
  EXPECT_TRUE(same(fedavg.checkpoints.back().broadcast.values, zero.checkpoints.back().broadcast.values));
  const auto moved = [](const Recorded& result) {
    const auto& first = result.checkpoints.front().broadcast.values;
    const auto& last = result.checkpoints.back().broadcast.values;
    double sum = 0;
    for (size_t i = 0; i < first.size(); ++i) sum += (last[i].value - first[i].value).square().sum().item<double>();
    return sum;
  };
  EXPECT_LT(moved(strong), moved(fedavg));
}

TEST(LocalOnly, ReleasesNothing) {
  const auto setup = small_setup(config("local-only"));
  Recorded sink;
  privacy::Ledger ledger;
  const auto states = make_memory_store({});
  run_rounds(setup, *states, ledger, sink, 1);
  EXPECT_TRUE(ledger.events().empty());
  EXPECT_TRUE(std::isnan(sink.rounds.back().evaluation->global_accuracy));
  EXPECT_GT(sink.rounds.back().evaluation->over(&ClientScore::accuracy).mean, 0.4);
}

TEST(PersonalHead, StaysWithTheClient) {
  const auto setup =
      changed(small_setup(config("fedavg")), [](config::RunSpec& spec) { spec.model.personal = {"head."}; });
  const Recorded result = run(setup);
  for (const auto& [name, value] : result.checkpoints.back().broadcast.values) {
    EXPECT_FALSE(name.starts_with("head.")) << name;
  }
  EXPECT_FALSE(result.checkpoints.back().broadcast.values.empty());
  EXPECT_TRUE(std::isnan(result.rounds.back().evaluation->global_accuracy));
}

TEST(Divergence, IsRecordedAndTheRunGoesOn) {
  const auto setup = changed(small_setup(config("fedavg")), [](config::RunSpec& spec) { spec.federation.lr = 1e30; });
  const Recorded result = run(setup, 2);
  ASSERT_EQ(result.rounds.size(), 2U);
  EXPECT_EQ(result.rounds[0].diverged.size(), 4U);
  EXPECT_EQ(result.rounds[0].uploads, 0);
  EXPECT_TRUE(all_finite(result.checkpoints.back().broadcast.values));
}

TEST(Uploads, AreRecordedOnlyWhenAskedFor) {
  const auto setup = small_setup(config("fedavg"));
  EXPECT_TRUE(run(setup).uploads.empty());
  const auto recorded = changed(setup, [](config::RunSpec& spec) { spec.record.uploads = true; });
  EXPECT_EQ(run(recorded, 2).uploads.size(), 8U);
}

TEST(Seeds, ChangeTheResult) {
  const Recorded one = run(small_setup(config("fedavg", "seed = 1")));
  const Recorded two = run(small_setup(config("fedavg", "seed = 2")));
  EXPECT_FALSE(same(one.checkpoints.back().broadcast.values, two.checkpoints.back().broadcast.values));
}

TEST(Evaluation, KnowsLocalAndNeighbourClasses) {
  auto setup = small_setup(
      "rounds = 15\n[data]\nclients = 3\npartition = \"pathological\"\nclasses_per_client = 1\n[federation]\nbatch = "
      "8\nlr = "
      "0.2\n[method]\nname = \"local-only\"\n");
  const Recorded result = run(setup, 2);
  const Evaluation& evaluation = *result.rounds.back().evaluation;
  EXPECT_GT(evaluation.over(&ClientScore::local_accuracy).mean, 0.95);
  EXPECT_LT(evaluation.over(&ClientScore::neighbour_accuracy).mean, 0.05);
  EXPECT_FALSE(std::isfinite(evaluation.over(&ClientScore::global_test_accuracy).mean)) << "nobody asked for it";
}

// One class each: right on a third of what everyone's models are tested on, however good at home.
TEST(Evaluation, TestsEveryModelOnAllClientsClasses) {
  const std::string one_class_each =
      "rounds = 15\n[data]\nclients = 3\npartition = \"pathological\"\nclasses_per_client = 1\n[federation]\nbatch = "
      "8\nlr = 0.2\nglobal_test = {}\n[method]\nname = \"{}\"\n";
  const auto evaluated = [&](int records, const char* method) {
    return *run(small_setup(fmt::format(fmt::runtime(one_class_each), records, method)), 2).rounds.back().evaluation;
  };
  const Evaluation alone = evaluated(100000, "local-only");
  EXPECT_GT(alone.over(&ClientScore::accuracy).mean, 0.95);
  EXPECT_NEAR(alone.over(&ClientScore::global_test_accuracy).mean, 1.0 / 3, 0.05);
  const Evaluation global = evaluated(100000, "fedavg");
  for (const ClientScore& score : global.clients) EXPECT_EQ(score.global_test_accuracy, global.global_accuracy);
  const Evaluation same = evaluated(0, "local-only");
  for (size_t i = 0; i < same.clients.size(); ++i) EXPECT_EQ(same.clients[i].accuracy, alone.clients[i].accuracy);
}

}  // namespace
}  // namespace sotto::federation

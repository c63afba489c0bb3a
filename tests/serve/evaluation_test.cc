// How good the model is, released by clients under a mechanism.
#include "serve/evaluation.h"

#include "at_home.h"
#include "federation/client_runtime.h"
#include "federation/released_evaluation.h"
#include "privacy/guarantee.h"
#include "serve/status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace sotto::serve {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kRecords = 25;  // that every client counts over
constexpr const char* kServe = "evaluation = \"released\"\nevaluation_share = 0.2\n";
constexpr const char* kDeclared = "test_records = 25\n";

federation::FederationPlan asking_plan(const federation::Setup& setup) {
  return plan_of(setup, kServe, kDeclared);
}

member::Policy willing(const config::RunSpec& spec) {
  member::Policy policy = policy_for(spec);
  policy.released_evaluation = true;
  return policy;
}

// What a plan's releases cost a client, with and without the evaluation.
privacy::Tally cost(const federation::FederationPlan& plan, bool with_evaluation) {
  privacy::Tally tally;
  for (const privacy::Channel& channel : plan.setup().plan_for(plan.setup().facts_of(0, 80))) {
    if (with_evaluation || channel.terms().what != federation::kEvaluation) {
      tally.add(channel.terms(), channel.times());
    }
  }
  return tally;
}

int64_t right_answers(const federation::Setup& setup, const methods::Broadcast& broadcast, int64_t client) {
  const auto method = setup.method().make_client(setup.client_context());
  method->select(broadcast, {});
  const at::Tensor rows = setup.partition().shard(client).test;
  RandomStream stream(setup.spec().seed, "released-evaluation");
  const auto chosen = stream.sample_without_replacement(rows.size(0), kRecords);
  const auto predictions =
      federation::predict(*method, setup.dataset().test, rows.index_select(0, at::tensor(chosen, at::kLong)));
  return predictions.predicted.eq(predictions.truth).sum().item<int64_t>();
}

TEST(ReleasedEvaluation, IsPartOfThePromise) {
  const federation::Setup setup = federation::small_setup(config("ldp-fedavg"));
  const federation::FederationPlan plan = asking_plan(setup);
  const double epsilon = setup.spec().privacy->epsilon;
  const double delta = setup.spec().privacy->delta;
  EXPECT_LE(cost(plan, false).proven(delta), 0.8 * epsilon * (1 + 1e-9)) << "training leaves its share";
  EXPECT_LE(cost(plan, true).proven(delta), epsilon * (1 + 1e-9));
  EXPECT_GT(cost(plan, true).proven(delta), 0.97 * epsilon) << "and none of it is wasted";
  const federation::FederationPlan arrived(plan.text());
  EXPECT_EQ(arrived.hash(), plan.hash());
  EXPECT_EQ(arrived.setup().evaluation()->records, kRecords);
  EXPECT_EQ(plan_of(setup).text().find("evaluation"), std::string::npos) << "who does not ask has the plan he had";
}

TEST(ReleasedEvaluation, IsRefusedWhereNoNoiseCoversIt) {
  const auto refused = [](const std::string& toml, const std::string& declared, const std::string& why) {
    const federation::Setup setup = federation::small_setup(toml);
    try {
      plan_of(setup, kServe, declared);
      ADD_FAILURE() << "accepted, without: " << why;
    } catch (const UserError& error) {
      EXPECT_THAT(error.what(), HasSubstr(why));
    }
  };
  const auto with = [](const std::string& method, const std::string& privacy) {
    return fmt::format("rounds = 2\n[data]\nclients = 3\n[method]\nname = \"{}\"\n{}{}", method,
                       federation::needed_options(method), privacy);
  };
  refused(config("ldp-fedavg"), "", "test_records");
  refused(with("fedavg", ""), kDeclared, "needs [privacy]");
  refused(config("dp-fedavg"), kDeclared, "unit");
  refused(with("ldp-fedavg", "[privacy]\nepsilon = 8\ndelta = 1e-3\nadjacency = \"add-remove\"\nrecords = 80\n"),
          kDeclared, "adjacency");
  refused(with("local-only", federation::privacy_terms("local-only")), kDeclared, "fitted without noise");
}

TEST(ReleasedEvaluation, HasTheNoiseThatWasPaidFor) {
  const federation::Setup setup = federation::small_setup(config("ldp-fedavg"));
  const federation::FederationPlan plan = asking_plan(setup);
  const federation::Setup home = federation::Setup::at_home(plan.setup(), 0, records_of(setup, 0));
  const auto method = home.method().make_client(home.client_context());
  const methods::Broadcast broadcast = home.method().make_server(home.public_context())->open();
  const int64_t truth = right_answers(home, broadcast, 0);
  constexpr int kDraws = 4000;
  double sum = 0;
  double squares = 0;
  double stddev = 0;
  for (int i = 0; i < kDraws; ++i) {
    privacy::Ledger ledger;
    privacy::ReleaseContext context = federation::release_context(plan.setup(), ledger, 3, 0);
    context.generator = privacy::Generator::kSecure;
    const privacy::Release release = federation::release_evaluation(home, 0, *method, broadcast, {}, context);
    const auto noise = static_cast<double>(federation::right_count_in(release.values()) - truth);
    sum += noise;
    squares += noise * noise;
    stddev = ledger.events().at(0).noise_scale;
  }
  ASSERT_GT(stddev, 0.1);
  const double expected = stddev * stddev;
  EXPECT_NEAR(sum / kDraws, 0, 5 * stddev / std::sqrt(kDraws));
  EXPECT_NEAR(squares / kDraws, expected, 5 * expected * std::sqrt(2.0 / kDraws) + 0.02 * expected);
}

TEST(ReleasedEvaluation, OneHeldOutRecordMovesItByOne) {
  const federation::Setup setup = federation::small_setup(config("ldp-fedavg"));
  const auto own = records_of(setup, 0);
  const federation::FederationPlan plan = asking_plan(setup);
  const auto count = [&](std::shared_ptr<const models::TaskData> data) {
    const federation::Setup home = federation::Setup::at_home(plan.setup(), 0, std::move(data));
    return right_answers(home, home.method().make_server(home.public_context())->open(), 0);
  };
  const int64_t before = count(own);
  int64_t moved = 0;
  for (int64_t i = 0; i < own->dataset.test.size(); ++i) {
    auto other = std::make_shared<models::TaskData>(*own);
    other->dataset.test.y = other->dataset.test.y.clone();
    other->dataset.test.y[i] = (other->dataset.test.y[i].item<int64_t>() + 1) % 3;
    const int64_t change = std::abs(count(other) - before);
    EXPECT_LE(change, 1);
    moved += change;
  }
  EXPECT_GT(moved, 0);
}

class Asking : public ::testing::Test {
 protected:
  Asking() : setup_(federation::small_setup(config("ldp-fedavg"))), plan_(asking_plan(setup_)) {
    for (int64_t i = 0; i < kClients; ++i) {
      homes_.push_back(
          std::make_unique<HomeOf>(folder_ / fmt::format("home-{}", i), setup_, plan_, i, willing(setup_.spec())));
    }
  }

  nlohmann::json serve() {
    Server server(folder_ / "server", plan_, [] { return false; });
    for (int64_t i = 0; i < kClients; ++i) server.hub().join(fmt::format("home-{}", i), fmt::format("print-{}", i));
    nlohmann::json evaluation;
    std::thread rounds([&] {
      while (server.next_round()) {
      }
      evaluation = *server.evaluate();
      server.finish();
    });
    follow(server.hub(), homes_);
    rounds.join();
    last_ = read_broadcast(server.hub(), server.hub().work_for(0));
    rows_ = server.ledger().events(3, 3);
    return evaluation;
  }

  TempFolder folder_;
  federation::Setup setup_;
  federation::FederationPlan plan_;
  std::vector<std::unique_ptr<HomeOf>> homes_;
  methods::Broadcast last_;
  std::vector<privacy::Event> rows_;
};

TEST_F(Asking, TheServerGetsCountsAndTheirNoise) {
  const nlohmann::json evaluation = serve();
  ASSERT_EQ(evaluation["clients"].size(), 3U);
  EXPECT_EQ(evaluation["asked"], 3);
  double mean = 0;
  for (const auto& one : evaluation["clients"]) {
    const auto client = one["client"].get<int64_t>();
    const federation::Setup home = federation::Setup::at_home(plan_.setup(), client, records_of(setup_, client));
    const auto truth = static_cast<double>(right_answers(home, last_, client));
    EXPECT_NEAR(one["right"].get<double>(), truth, 8 * kRecords * one["noise_stddev"].get<double>());
    mean += one["accuracy"].get<double>() / 3;
  }
  EXPECT_NEAR(evaluation["accuracy"].get<double>(), mean, 1e-12);
  EXPECT_NEAR(evaluation["noise_stddev"].get<double>(),
              evaluation["clients"][0]["noise_stddev"].get<double>() / std::sqrt(3.0), 1e-9);
  EXPECT_EQ(server_status(folder_ / "server")["evaluation"], evaluation);
  EXPECT_EQ(server_status(folder_ / "server")["rounds_done"], 2);
  EXPECT_EQ(serve(), evaluation) << "a server that is started again asks nobody again";
}

TEST_F(Asking, EverybodyPaysAsThePlanSays) {
  serve();
  ASSERT_EQ(rows_.size(), 3U);
  const double delta = setup_.spec().privacy->delta;
  for (const auto& home : homes_) {
    const auto rows = home->home().ledger().events();
    ASSERT_EQ(rows.size(), 3U) << "two rounds and the evaluation";
    EXPECT_EQ(rows.back().what, federation::kEvaluation);
    EXPECT_EQ(rows.back().sensitivity, 1);
    EXPECT_NEAR(home->member().spent_epsilon(), cost(plan_, true).proven(delta), 1e-6);
    EXPECT_EQ(home->member().participations(), 2);
  }
}

TEST_F(Asking, ARetrySendsTheSameCount) {
  methods::Broadcast last = setup_.method().make_server(setup_.public_context())->open();
  last.round = 2;
  const member::Outcome once = homes_[0]->member().work(last);
  const std::string bytes = read_file(once.upload->file);
  const double spent = homes_[0]->member().spent_epsilon();
  homes_[0]->open();
  EXPECT_EQ(homes_[0]->member().work(last).upload->digest, once.upload->digest);
  EXPECT_EQ(read_file(once.upload->file), bytes);
  EXPECT_EQ(homes_[0]->member().spent_epsilon(), spent);
  last.round = 3;
  EXPECT_THROW(homes_[0]->member().work(last), member::NotAllowed) << "the plan has no such round";
}

TEST_F(Asking, NothingElsePassesForAnEvaluation) {
  Server server(folder_ / "server", plan_, [] { return false; });
  server.hub().join("home-0", "print-0");
  std::thread first([&] {
    try {
      server.next_round();
    } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): it is stopped by what follows
    }
  });
  while (server.hub().work_for(0).kind != Work::Kind::kRound) std::this_thread::yield();
  methods::Broadcast last = read_broadcast(server.hub(), server.hub().work_for(0));
  last.round = 2;
  member::SealedUpload upload = *homes_[0]->member().work(last).upload;
  upload.round = 1;
  upload.key = plan_.upload_key(0, 1);
  nlohmann::json rows = nlohmann::json::parse(upload.releases);
  rows[0]["round"] = 1;
  upload.releases = rows.dump();
  const Answer answer = hand_in(server.hub(), 0, upload);
  EXPECT_EQ(answer.verdict, Verdict::kRefused);
  EXPECT_THAT(answer.reason, HasSubstr("not a release of the plan"));
  for (int64_t client = 0; client < kClients; ++client) server.hub().skip(client, 1);
  first.join();
}

TEST_F(Asking, NothingLeavesUnlessThePolicySaysSo) {
  const fs::path folder = folder_ / "closed";
  EXPECT_THROW(HomeOf(folder, setup_, plan_, 0), member::NotAllowed);
  EXPECT_FALSE(fs::exists(folder / "outbox"));
  const privacy::Home home(folder);
  EXPECT_EQ(home.ledger().rows(), 0);
}

TEST_F(Asking, TooFewHeldOutRecordsAreSaidBeforehand) {
  auto few = std::make_shared<models::TaskData>(*records_of(setup_, 0));
  auto& test = few->dataset.test;
  test.x = test.x.narrow(0, 0, kRecords - 1);
  test.y = test.y.narrow(0, 0, kRecords - 1);
  test.domain = test.domain.narrow(0, 0, kRecords - 1);
  try {
    federation::Setup::at_home(plan_.setup(), 0, few);
    ADD_FAILURE();
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("holds out 25 records"));
  }
}

}  // namespace
}  // namespace sotto::serve

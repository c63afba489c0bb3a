#include "../support/expect_user_error.h"
#include "at_home.h"
#include "base/interrupt.h"
#include "config/load.h"
#include "federation/state_store.h"
#include "member/records.h"
#include "methods/catalogue.h"
#include "models/task_data.h"
#include "privacy/guarantee.h"
#include "transport/simulation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

namespace sotto::serve {
namespace {

using ::testing::HasSubstr;

struct Trace {
  methods::Broadcast broadcast;
  std::vector<privacy::Event> rows;
};

Trace simulate(const federation::Setup& setup) {
  const auto states = federation::make_memory_store({});
  privacy::Ledger ledger;
  transport::Simulation simulation(setup, *states, ledger);
  while (simulation.next_round()) {
  }
  return {simulation.broadcast(), ledger.events()};
}

Trace run_at_homes(const federation::Setup& setup, const federation::FederationPlan& plan, const fs::path& folder) {
  std::vector<std::unique_ptr<HomeOf>> homes;
  for (int64_t i = 0; i < kClients; ++i) {
    homes.push_back(std::make_unique<HomeOf>(folder / fmt::format("home-{}", i), setup, plan, i));
  }
  Server server(folder / "server", plan, [] { return false; });
  for (int64_t i = 0; i < kClients; ++i) server.hub().join(fmt::format("home-{}", i), fmt::format("print-{}", i));
  std::thread rounds([&] {
    while (server.next_round()) {
    }
    server.finish();
  });
  follow(server.hub(), homes);
  rounds.join();
  return {read_broadcast(server.hub(), server.hub().work_for(0)), server.ledger().events()};
}

bool same(const NamedTensors& a, const NamedTensors& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const NamedTensor& x, const NamedTensor& y) {
    return x.name == y.name && x.value.dtype() == y.value.dtype() && at::equal(x.value, y.value);
  });
}

class EveryMethod : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryMethod, GivesTheModelAndTheRowsOfTheSimulation) {
  const federation::Setup setup = federation::small_setup(config(GetParam()));
  const federation::FederationPlan plan = plan_of(setup);
  const TempFolder folder;
  const Trace here = simulate(setup);
  const Trace there = run_at_homes(setup, plan, folder.path());
  EXPECT_EQ(here.broadcast.round, there.broadcast.round);
  EXPECT_TRUE(same(here.broadcast.values, there.broadcast.values));
  EXPECT_EQ(here.rows, there.rows);
}

INSTANTIATE_TEST_SUITE_P(Catalogue, EveryMethod, ::testing::ValuesIn(methods::method_names()), [](const auto& test) {
  std::string name = test.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST(Plan, IsTheSameAfterItTravelled) {
  const federation::Setup setup = federation::small_setup(config("ldp-fedavg"));
  const federation::FederationPlan plan = plan_of(setup, "quorum = 2\ndeadline = 5\nmost_participations = 1\n");
  const federation::FederationPlan arrived(plan.text());
  EXPECT_EQ(arrived.hash(), plan.hash());
  EXPECT_EQ(arrived.terms().quorum, 2);
  EXPECT_EQ(arrived.setup().participations_of(0), 1);
  EXPECT_EQ(arrived.setup().spec().hash(), plan.setup().spec().hash());
  EXPECT_EQ(arrived.setup().facts().class_names, plan.setup().facts().class_names);
}

TEST(Plan, FromAHostileServerIsRefused) {
  const federation::Setup setup = federation::small_setup(config("ldp-fedavg"));
  const std::string text = plan_of(setup).text();
  const auto refused = [](std::string changed, const std::string& why) {
    try {
      federation::FederationPlan plan(std::move(changed));
      ADD_FAILURE() << "accepted, without: " << why;
    } catch (const UserError& error) {
      EXPECT_THAT(error.what(), HasSubstr(why));
    }
  };
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = text;
    const size_t at = changed.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return changed.replace(at, from.size(), to);
  };
  refused("", "no JSON");
  refused("[1,2]", "no JSON");
  refused(text.substr(0, text.size() / 2), "no JSON");
  refused(with("\"version\":1", "\"version\":9"), "version 9");
  refused(with("\"config\":", "\"konfig\":"), "config");
  refused(with("weights = ''", "weights = '/etc/shadow'"), "names a file");
  // Also those that look like names: a key that lies where the program was started.
  const TempFolder here;
  write_file_atomically(here / "client.key", "secret");
  const fs::path before = fs::current_path();
  fs::current_path(here.path());
  const std::vector<std::string> secrets = {(here / "client.key").string(), "client.key"};
  for (const std::string& secret : secrets) {
    refused(with("weights = ''", fmt::format("weights = '{}'", secret)), "names a file");
    refused(with("features = ''", fmt::format("features = '{}'", secret)), "names a file");
    for (const char* key : {"centre", "project_on"}) {
      refused(with("[data]\\n", fmt::format("[data]\\n{} = '{}'\\n", key, secret)), "names a file");
    }
    for (const char* key : {"encoder", "public_data", "curve"}) {
      refused(with("[method]\\n", fmt::format("[method]\\n{} = '{}'\\n", key, secret)), "names a file");
    }
  }
  refused(with("weights = ''", "weights = 'elsewhere+client.key'"), "names a file");
  fs::current_path(before);
  refused(with("\"shape\":[6]", "\"shape\":[-6]"), "shape");
  refused(with("\"shape\":[6]", "\"shape\":[6,6]"), "shape");
  refused(with("\"records\":80.0", "\"records\":1e999"), "");
  refused(with("\"quorum\":3", "\"quorum\":99"), "quorum");
  refused(std::string(5 << 20, ' '), "bytes");
}

class AtHome : public ::testing::Test {
 protected:
  AtHome()
      : setup_(federation::small_setup(config("ldp-fedavg", 3))),
        plan_(plan_of(setup_)),
        home_(folder_.path() / "home", setup_, plan_, 0) {}

  methods::Broadcast first() { return setup_.method().make_server(setup_.public_context())->open(); }

  TempFolder folder_;
  federation::Setup setup_;
  federation::FederationPlan plan_;
  HomeOf home_;
};

TEST_F(AtHome, ARetrySendsTheSameBytesAndSpendsNothing) {
  const member::Outcome once = home_.member().work(first());
  const double spent = home_.member().spent_epsilon();
  const std::string bytes = read_file(once.upload->file);
  home_.open();
  const member::Outcome again = home_.member().work(first());
  EXPECT_EQ(again.upload->digest, once.upload->digest);
  EXPECT_EQ(again.upload->key, once.upload->key);
  EXPECT_EQ(read_file(again.upload->file), bytes);
  EXPECT_EQ(home_.member().spent_epsilon(), spent);
  EXPECT_EQ(home_.home().ledger().rows(), 1);
}

TEST_F(AtHome, ASkippedRoundIsSkippedAgain) {
  const federation::Setup alone = federation::small_setup(
      fmt::format("rounds = 3\n[data]\nclients = {}\n[method]\nname = \"local-only\"\n", kClients));
  const federation::FederationPlan plan = plan_of(alone);
  HomeOf home(folder_.path() / "alone", alone, plan, 0);
  const methods::Broadcast start = alone.method().make_server(alone.public_context())->open();
  EXPECT_TRUE(home.member().work(start).skips);
  home.open();
  EXPECT_TRUE(home.member().work(start).skips) << "the server may not have heard of it";
}

TEST_F(AtHome, SettledUploadsAreGone) {
  const member::Outcome outcome = home_.member().work(first());
  home_.member().settle(0);
  EXPECT_TRUE(fs::exists(outcome.upload->file));
  home_.member().settle(1);
  EXPECT_FALSE(fs::exists(outcome.upload->file));
}

TEST_F(AtHome, ARoundThatIsOverIsNotWorkedOnAgain) {
  methods::Broadcast second = first();
  second.round = 1;
  home_.member().work(second);
  EXPECT_THROW(home_.member().work(first()), member::NotAllowed);
}

TEST_F(AtHome, AHostileBroadcastIsRefused) {
  const auto refused = [&](const std::function<void(NamedTensors&)>& change) {
    methods::Broadcast bad = first();
    bad.values = clone(bad.values);
    change(bad.values);
    EXPECT_THROW(home_.member().work(bad), member::NotAllowed);
  };
  refused([](NamedTensors& values) { values.clear(); });
  refused([](NamedTensors& values) { values[0].name = "other"; });
  refused([](NamedTensors& values) { values[0].value = values[0].value.to(at::kDouble); });
  refused([](NamedTensors& values) { values[0].value = values[0].value.flatten(); });
  refused([](NamedTensors& values) { values[0].value.fill_(std::numeric_limits<float>::quiet_NaN()); });
  EXPECT_EQ(home_.home().ledger().rows(), 0);
  EXPECT_TRUE(home_.member().work(first()).upload);
}

TEST_F(AtHome, ADamagedSealIsRefused) {
  const member::Outcome outcome = home_.member().work(first());
  write_file_atomically(outcome.upload->file, "something else");
  EXPECT_THROW(home_.member().work(first()), UserError);
}

TEST_F(AtHome, AnOldCopyOfAHomeIsRefused) {
  const fs::path copy = folder_.path() / "copy";
  home_.home().commit();
  fs::copy(folder_.path() / "home", copy, fs::copy_options::recursive);
  const member::Outcome outcome = home_.member().work(first());
  HomeOf old(copy, setup_, plan_, 0);
  EXPECT_NO_THROW(home_.member().check_seen(1, outcome.upload->digest));
  EXPECT_THROW(old.member().check_seen(1, outcome.upload->digest), UserError);
}

TEST_F(AtHome, MoreThanThePlansParticipationsAreSkipped) {
  const federation::FederationPlan plan = plan_of(setup_, "most_participations = 1\n");
  HomeOf home(folder_.path() / "capped", setup_, plan, 0);
  EXPECT_TRUE(home.member().work(first()).upload);
  methods::Broadcast second = first();
  second.round = 1;
  const member::Outcome outcome = home.member().work(second);
  EXPECT_FALSE(outcome.upload);
  EXPECT_TRUE(outcome.skips);
  EXPECT_EQ(home.home().ledger().rows(), 1);
}

TEST_F(AtHome, ASecondFederationBeyondTheBudgetIsRefused) {
  const fs::path folder = folder_.path() / "small";
  make_folder(folder);
  write_file_atomically(folder / "policy.toml", "[budget]\nepsilon = 9\ndelta = 1e-3\nadjacency = \"zero-out\"\n");
  HomeOf home(folder, setup_, plan_, 0);
  for (int round = 0; round < 3; ++round) {
    methods::Broadcast next = first();
    next.round = round;
    EXPECT_TRUE(home.member().work(next).upload);
  }
  const int64_t rows = home.home().ledger().rows();
  const auto other = federation::changed(setup_, [](config::RunSpec& spec) { spec.seed = 8; });
  const federation::FederationPlan plan = plan_of(other);
  EXPECT_THROW(member::Member(home.home(), home.policy(), plan, 0,
                              federation::Setup::at_home(plan.setup(), 0, records_of(other, 0))),
               member::NotAllowed);
  EXPECT_EQ(home.home().ledger().rows(), rows);
}

TEST_F(AtHome, ThePolicyDecides) {
  const auto refused = [&](const std::function<void(member::Policy&)>& change, const std::string& why,
                           const federation::FederationPlan& plan) {
    member::Policy policy = policy_for(setup_.spec());
    policy.unproven = false;
    change(policy);
    try {
      member::require_allowed(policy, plan, 80);
      ADD_FAILURE() << "allowed, without: " << why;
    } catch (const member::NotAllowed& refusal) {
      EXPECT_THAT(refusal.what(), HasSubstr(why));
    }
  };
  member::Policy good = policy_for(setup_.spec());
  good.unproven = false;
  EXPECT_NO_THROW(member::require_allowed(good, plan_, 80));
  refused([](auto& p) { p.methods = {}; }, "allow.methods", plan_);
  refused([](auto& p) { p.methods = {"fedavg"}; }, "allow.methods", plan_);
  refused([](auto& p) { p.variants = {"paper"}; }, "allow.variants", plan_);
  refused([](auto& p) { p.trust = {"central"}; }, "allow.trust", plan_);
  refused([](auto& p) { p.noise = privacy::Generator::kSecure; }, "allow.noise", plan_);
  refused([](auto& p) { p.budget.adjacency = privacy::Adjacency::kReplace; }, "budget is one of", plan_);
  refused([](auto& p) { p.least_cohort = 4; }, "least_cohort", plan_);
  refused([](auto& p) { p.most_participations = 2; }, "most_participations", plan_);
  refused([](auto& p) { p.declare = {}; }, "allow.declare", plan_);
  const federation::Setup clear =
      federation::small_setup(fmt::format("rounds = 3\n[data]\nclients = {}\n[method]\nname = \"fedavg\"\n", kClients));
  refused([](auto& p) { p.methods = {"fedavg"}; }, "no privacy", plan_of(clear));
  try {
    member::require_allowed(good, plan_, 79);
    ADD_FAILURE();
  } catch (const member::NotAllowed& refusal) {
    EXPECT_THAT(refusal.what(), HasSubstr("at least 80"));
  }
}

TEST(Policies, NoFileAllowsNothing) {
  const TempFolder folder;
  EXPECT_THROW(member::read_policy(folder.path()), UserError);
  write_file_atomically(folder.path() / "policy.toml",
                        "[budget]\nepsilon = 1\ndelta = 1e-5\nadjacency = \"zero-out\"\n");
  const member::Policy policy = member::read_policy(folder.path());
  EXPECT_TRUE(policy.methods.empty());
  EXPECT_TRUE(policy.declare.empty());
  EXPECT_FALSE(policy.unproven);
  EXPECT_EQ(policy.noise, privacy::Generator::kSecure);
  EXPECT_EQ(policy.trust, std::vector<std::string>{"local"});
}

TEST(Records, ArePlacedAsThePlanSays) {
  const TempFolder folder;
  const fs::path table_file = folder / "records.csv";
  write_file_atomically(table_file, "x,y,label\n1,2,no\n-1,0.5,yes\n2,2.5,no\n0,-3,yes\n");
  const auto simulated = [&](const std::string& placed) {
    return config::parse_run_spec(
        fmt::format("rounds = 2\n[data]\nname = \"custom\"\npath = \"{}\"\nclients = 2\n{}[data.schema]\ncolumns = "
                    "[{{name = \"x\", kind = \"number\", range = [-3, 3]}}, {{name = \"y\", kind = \"number\", range = "
                    "[-3, 3]}}, {{name = \"label\", kind = \"label\", values = [\"no\", \"yes\"]}}]\n[model]\nname = "
                    "\"mlp\"\nhidden = [4]\n[method]\nname = \"fedavg\"\n",
                    table_file.string(), placed),
        "test.toml", {});
  };
  member::Policy policy;
  policy.data.name = "custom";
  policy.data.path = table_file.string();
  at::Tensor as_they_are;
  for (const std::string placed : {"", "centre = \"record\"\n", "normalise = true\n"}) {
    const config::RunSpec spec = simulated(placed);
    const federation::FederationPlan plan(spec, table("records = 2\n", "declared"), std::nullopt);
    const at::Tensor own = member::load_records(policy, plan)->dataset.train.x;
    const at::Tensor there = models::load_task_data(spec.data, spec.model, spec.seed).dataset.train.x;
    EXPECT_TRUE(at::equal(own, there)) << placed;
    if (placed.empty()) {
      as_they_are = own;
    } else {
      EXPECT_FALSE(at::equal(own, as_they_are)) << placed;
    }
  }
}

class HubTest : public ::testing::Test {
 protected:
  HubTest()
      : setup_(federation::small_setup(config("ldp-fedavg"))),
        plan_(plan_of(setup_, "quorum = 1\ndeadline = 0.2\n")),
        home_(folder_.path() / "home", setup_, plan_, 0) {}

  methods::Broadcast first() { return setup_.method().make_server(setup_.public_context())->open(); }
  std::unique_ptr<Hub> hub() { return std::make_unique<Hub>(folder_.path() / "server", plan_); }
  void open(Hub& hub) {
    hub.cohort(1, [] { return std::vector<int64_t>{0, 1}; });
    hub.publish(first(), false);
  }

  TempFolder folder_;
  federation::Setup setup_;
  federation::FederationPlan plan_;
  HomeOf home_;
};

TEST_F(HubTest, NamesAndCertificatesGoTogether) {
  const auto hub = this->hub();
  EXPECT_EQ(hub->join("a", "1").client, 0);
  EXPECT_EQ(hub->join("b", "2").client, 1);
  EXPECT_EQ(hub->join("a", "1").client, 0);
  EXPECT_THROW(hub->join("a", "3"), Refused);
  EXPECT_THROW(hub->join("c", "2"), Refused);
  EXPECT_EQ(hub->join("c", "3").client, 2);
  EXPECT_THROW(hub->join("d", "4"), Refused) << "all places are taken";
  hub->revoke("2");
  EXPECT_FALSE(hub->member("2"));
  EXPECT_THROW(hub->join("b", "2"), Refused);
  EXPECT_EQ(hub->join("b", "5").client, 1) << "a new certificate takes the place of one that was revoked";
  EXPECT_EQ(hub->member("5"), 1);
  EXPECT_FALSE(hub->member("2"));
  EXPECT_EQ(hub->member("3"), 2);
}

TEST_F(HubTest, UploadsGoOnWhereTheyStopped) {
  auto hub = this->hub();
  hub->join("a", "1");
  open(*hub);
  const auto outcome = home_.member().work(first());
  const std::string bytes = read_file(outcome.upload->file);
  const Offer offer{1, outcome.upload->key, outcome.upload->digest, outcome.upload->bytes, outcome.upload->releases};
  EXPECT_EQ(hub->offer(0, offer).offset, 0);
  hub->append(0, offer.key, 0, std::string_view(bytes).substr(0, 100));
  EXPECT_EQ(hub->append(0, offer.key, 50, "wrong place").offset, 100);
  hub->pause(0);
  hub = nullptr;
  hub = this->hub();
  open(*hub);
  EXPECT_EQ(hub->offer(0, offer).offset, 100);
  EXPECT_EQ(hand_in(*hub, 0, *outcome.upload).verdict, Verdict::kStored);
  EXPECT_EQ(hub->offer(0, offer).verdict, Verdict::kStored) << "a duplicate is no mistake";
  Offer other = offer;
  other.digest = std::string(64, '0');
  EXPECT_EQ(hub->offer(0, other).verdict, Verdict::kRefused);
  EXPECT_EQ(hub->join("a", "1").seen_digest, offer.digest);
}

TEST_F(HubTest, AnOldCopyIsKnownByWhatWasOfferedAndNeverArrived) {
  auto hub = this->hub();
  hub->join("a", "1");
  open(*hub);
  home_.home().commit();
  fs::copy(folder_ / "home", folder_ / "copy", fs::copy_options::recursive);
  const auto outcome = home_.member().work(first());
  const Offer offer{1, outcome.upload->key, outcome.upload->digest, outcome.upload->bytes, outcome.upload->releases};
  EXPECT_EQ(hub->offer(0, offer).verdict, Verdict::kSend);
  hub->append(0, offer.key, 0, read_file(outcome.upload->file).substr(0, 100));
  hub->skip(1, 1);
  hub->collect(1, [] { return false; });
  EXPECT_EQ(hub->offer(0, offer).verdict, Verdict::kLate);
  hub = nullptr;
  hub = this->hub();
  const Joined joined = hub->join("a", "1");
  EXPECT_EQ(joined.seen_round, 1);
  EXPECT_NO_THROW(home_.member().check_seen(joined.seen_round, joined.seen_digest));
  HomeOf old(folder_ / "copy", setup_, plan_, 0);
  EXPECT_THROW(old.member().check_seen(joined.seen_round, joined.seen_digest), UserError);
}

TEST_F(HubTest, OneDigestIsOfferedForARound) {
  auto hub = this->hub();
  hub->join("a", "1");
  open(*hub);
  const auto outcome = home_.member().work(first());
  const Offer offer{1, outcome.upload->key, outcome.upload->digest, outcome.upload->bytes, outcome.upload->releases};
  Offer drawn_again = offer;
  drawn_again.digest = std::string(64, '0');
  EXPECT_EQ(hub->offer(0, offer).verdict, Verdict::kSend);
  EXPECT_EQ(hub->offer(0, drawn_again).verdict, Verdict::kRefused) << "the first is under way";
  hub->pause(0);
  EXPECT_EQ(hub->offer(0, drawn_again).verdict, Verdict::kRefused) << "the first was broken off";
  hub = nullptr;
  hub = this->hub();
  open(*hub);
  EXPECT_EQ(hub->offer(0, drawn_again).verdict, Verdict::kRefused) << "another process";
  EXPECT_EQ(hand_in(*hub, 0, *outcome.upload).verdict, Verdict::kStored);
}

TEST_F(HubTest, WhatCameInWholeBeforeTheEndIsTaken) {
  const auto outcome = home_.member().work(first());
  const std::string bytes = read_file(outcome.upload->file);
  const Offer offer{1, outcome.upload->key, outcome.upload->digest, outcome.upload->bytes, outcome.upload->releases};
  for (const bool damaged : {true, false}) {
    const auto hub = this->hub();
    hub->join("a", "1");
    open(*hub);
    const fs::path part =
        folder_.path() / "server" / "spool" / "000001" / fmt::format("0-{}.part", offer.digest.substr(0, 16));
    write_file_atomically(part, damaged ? std::string(bytes.size(), 'x') : bytes);
    const Answer answer = hub->offer(0, offer);
    EXPECT_EQ(answer.verdict, damaged ? Verdict::kSend : Verdict::kStored);
    EXPECT_EQ(answer.offset, 0);
  }
}

TEST_F(HubTest, WhatIsWrongIsRefused) {
  const auto hub = this->hub();
  hub->join("a", "1");
  open(*hub);
  const auto outcome = home_.member().work(first());
  const Offer good{1, outcome.upload->key, outcome.upload->digest, outcome.upload->bytes, outcome.upload->releases};
  const auto changed = [&](const std::function<void(Offer&)>& change) {
    Offer offer = good;
    change(offer);
    return hub->offer(0, offer).verdict;
  };
  EXPECT_EQ(changed([](Offer& o) { o.key = "../../x"; }), Verdict::kRefused);
  EXPECT_EQ(changed([](Offer& o) { o.digest = "x"; }), Verdict::kRefused);
  EXPECT_EQ(changed([](Offer& o) { o.bytes = -1; }), Verdict::kRefused);
  EXPECT_EQ(changed([](Offer& o) { o.bytes = int64_t{1} << 60; }), Verdict::kRefused);
  EXPECT_EQ(changed([](Offer& o) { o.round = 2; }), Verdict::kRefused) << "the key is of another round";
  EXPECT_EQ(changed([&](Offer& o) {
              o.round = 2;
              o.key = plan_.upload_key(0, 2);
            }),
            Verdict::kLate);
  const federation::FederationPlan another = plan_of(setup_, "deadline = 3\n");
  EXPECT_EQ(changed([&](Offer& o) { o.key = another.upload_key(0, 1); }), Verdict::kRefused);
  EXPECT_EQ(hub->offer(1, good).verdict, Verdict::kRefused) << "another client's";
  Offer uninvited = good;
  uninvited.key = plan_.upload_key(2, 1);
  EXPECT_THAT(hub->offer(2, uninvited).reason, HasSubstr("did not ask")) << "not of the cohort";
  EXPECT_EQ(hub->offer(0, good).verdict, Verdict::kSend);
  const std::string noise(static_cast<size_t>(good.bytes), 'x');
  EXPECT_EQ(hub->append(0, good.key, 0, noise + "y").verdict, Verdict::kRefused);
  EXPECT_EQ(hub->offer(0, good).verdict, Verdict::kSend);
  const Answer answer = hub->append(0, good.key, 0, noise);
  EXPECT_EQ(answer.verdict, Verdict::kRefused);
  EXPECT_THAT(answer.reason, HasSubstr("not those"));
  EXPECT_EQ(hand_in(*hub, 0, *outcome.upload).verdict, Verdict::kStored) << "and the right one is taken";
}

TEST(HostileMember, CannotMakeUpRows) {
  const federation::Setup setup = federation::small_setup(config("ldp-fedavg"));
  const federation::FederationPlan plan = plan_of(setup, "quorum = 1\ndeadline = 0.2\n");
  const TempFolder folder;
  HomeOf home(folder / "home", setup, plan, 0);
  Server server(folder / "server", plan, [] { return false; });
  server.hub().join("a", "1");
  std::thread rounds([&] { EXPECT_TRUE(server.next_round()); });
  while (server.hub().work_for(0).kind != Work::Kind::kRound) std::this_thread::yield();
  const member::SealedUpload good = *home.member().work(read_broadcast(server.hub(), server.hub().work_for(0))).upload;
  const auto row = nlohmann::json::parse(good.releases)[0];
  const auto refused = [&](const std::function<void(nlohmann::json & rows)>& change, const std::string& why) {
    member::SealedUpload bad = good;
    nlohmann::json rows = {row};
    change(rows);
    bad.releases = rows.dump();
    const Answer answer = hand_in(server.hub(), 0, bad);
    EXPECT_EQ(answer.verdict, Verdict::kRefused);
    EXPECT_THAT(answer.reason, HasSubstr(why));
  };
  refused([](auto& rows) { rows.clear(); }, "which releases");
  refused([](auto& rows) { rows[0] = 1; }, "described");
  refused([](auto& rows) { rows[0]["what"] = "everything"; }, "not a release of the plan");
  refused([](auto& rows) { rows[0]["client"] = 1; }, "another round or client");
  refused([](auto& rows) { rows[0]["steps"] = int64_t{1} << 60; }, "no mechanism");
  refused([](auto& rows) { rows[0]["sampling_rate"] = -1; }, "no mechanism");
  refused(
      [&](auto& rows) {
        rows.push_back(row);
        rows[1]["noise_scale"] = 1e9;
      },
      "twice");
  EXPECT_EQ(hand_in(server.hub(), 0, good).verdict, Verdict::kStored);
  rounds.join();
  EXPECT_EQ(server.ledger().rows(), 1);
}

// As somebody would send it who writes his own client.
member::SealedUpload with_weight(member::SealedUpload upload, const fs::path& file, const std::optional<double>& weight,
                                 const std::optional<double>& declared) {
  if (weight) {
    io::SafeTensors content = io::read_safetensors(upload.file);
    for (NamedTensor& tensor : content.tensors) {
      if (tensor.name == "records") tensor.value = at::scalar_tensor(*weight, at::kDouble);
    }
    const std::string bytes = io::safetensors_bytes(content);
    upload.file = file;
    write_file_atomically(file, bytes);
    upload.bytes = static_cast<int64_t>(bytes.size());
    upload.digest = sha256(bytes);
  }
  auto rows = nlohmann::json::parse(upload.releases);
  auto parameters = nlohmann::json::parse(rows[0]["parameters"].get<std::string>());
  EXPECT_EQ(parameters["declared"]["records"], 80.0);
  parameters.erase("declared");
  if (declared) parameters["declared"] = {{"records", *declared}};
  rows[0]["parameters"] = parameters.dump();
  upload.releases = rows.dump();
  return upload;
}

TEST(HostileMember, CannotWeighWhatItLikes) {
  const federation::Setup setup = federation::small_setup(config("ldp-fedavg"));
  const federation::FederationPlan plan = plan_of(setup, "quorum = 1\ndeadline = 0.2\n");
  const TempFolder folder;
  Server server(folder / "server", plan, [] { return false; });
  std::vector<std::unique_ptr<HomeOf>> homes;
  for (int64_t i = 0; i < kClients; ++i) {
    homes.push_back(std::make_unique<HomeOf>(folder / fmt::format("home-{}", i), setup, plan, i));
    server.hub().join(fmt::format("home-{}", i), fmt::format("print-{}", i));
  }
  std::thread rounds([&] { EXPECT_TRUE(server.next_round()); });
  while (server.hub().work_for(0).kind != Work::Kind::kRound) std::this_thread::yield();
  std::vector<member::SealedUpload> good;
  for (const auto& home : homes) {
    good.push_back(*home->member().work(read_broadcast(server.hub(), server.hub().work_for(0))).upload);
  }
  const auto refused = [&](int64_t client, std::optional<double> weight, std::optional<double> declared) {
    const auto bad = with_weight(good[static_cast<size_t>(client)], folder / "bad", weight, declared);
    const Answer answer = hand_in(server.hub(), client, bad);
    EXPECT_EQ(answer.verdict, Verdict::kRefused);
    EXPECT_THAT(answer.reason, HasSubstr("'records'"));
  };
  refused(0, {}, {});
  refused(0, {}, 79.0);
  refused(1, 1e300, 1e300);
  refused(2, std::numeric_limits<double>::min(), std::numeric_limits<double>::min());
  EXPECT_EQ(hand_in(server.hub(), 0, good[0]).verdict, Verdict::kStored);
  rounds.join();
  EXPECT_EQ(server.ledger().rows(), 1);
}

TEST(HostileMember, WhoseUploadCannotBeFoldedIsLeftOut) {
  const federation::Setup setup = federation::small_setup(config("ldp-fedavg"));
  const federation::FederationPlan plan = plan_of(setup);
  const TempFolder folder;
  Hub hub(folder / "server", plan);
  privacy::Ledger ledger;
  HubTransport transport(hub, plan, ledger, [] { return false; });
  std::vector<int64_t> everybody;
  std::vector<std::unique_ptr<HomeOf>> homes;
  for (int64_t i = 0; i < kClients; ++i) {
    homes.push_back(std::make_unique<HomeOf>(folder / fmt::format("home-{}", i), setup, plan, i));
    hub.join(fmt::format("home-{}", i), fmt::format("print-{}", i));
    everybody.push_back(i);
  }
  hub.cohort(1, [&] { return everybody; });
  const methods::Broadcast first = setup.method().make_server(setup.public_context())->open();
  std::vector<int64_t> used;
  std::thread round([&] {
    transport.exchange(everybody, first, [&](federation::Reply&& reply) {
      TORCH_CHECK(reply.client != 1, "too large for a float");
      used.push_back(reply.client);
    });
  });
  while (hub.work_for(0).kind != Work::Kind::kRound) std::this_thread::yield();
  for (int64_t i = 0; i < kClients; ++i) {
    EXPECT_EQ(hand_in(hub, i, *homes[static_cast<size_t>(i)]->member().work(first).upload).verdict, Verdict::kStored);
  }
  round.join();
  EXPECT_EQ(used, (std::vector<int64_t>{0, 2}));
}

TEST_F(HubTest, TheDeadlineFreezesWhoIsThere) {
  auto hub = this->hub();
  hub->join("a", "1");
  open(*hub);
  const auto outcome = home_.member().work(first());
  hand_in(*hub, 0, *outcome.upload);
  EXPECT_EQ(hub->collect(1, [] { return false; }), std::vector<int64_t>{0});
  hub = nullptr;
  hub = this->hub();
  open(*hub);
  EXPECT_EQ(hub->skip(1, 1).verdict, Verdict::kLate);
  EXPECT_EQ(hub->collect(1, [] { return false; }), std::vector<int64_t>{0}) << "frozen, whatever happens";
}

TEST_F(HubTest, LostFilesAreAskedForAgain) {
  auto hub = this->hub();
  hub->join("a", "1");
  open(*hub);
  const auto outcome = home_.member().work(first());
  hand_in(*hub, 0, *outcome.upload);
  EXPECT_EQ(hub->work_for(0).kind, Work::Kind::kNothing);
  hub = nullptr;
  write_file_atomically(folder_.path() / "server" / "spool" / "000001" / "0.upload", "cut");
  hub = this->hub();
  open(*hub);
  EXPECT_EQ(hub->work_for(0).kind, Work::Kind::kRound);
  EXPECT_EQ(hand_in(*hub, 0, *outcome.upload).verdict, Verdict::kStored);
}

TEST_F(HubTest, WorkIsAnnounced) {
  const auto hub = this->hub();
  hub->join("a", "1");
  std::atomic<int> calls = 0;
  hub->when_there_is_work(0, [&] { ++calls; });
  hub->when_there_is_work(2, [&] { calls += 100; });
  EXPECT_EQ(calls, 0);
  open(*hub);
  EXPECT_EQ(calls, 1) << "only those who are asked";
  hub->when_there_is_work(0, [&] { ++calls; });
  EXPECT_EQ(calls, 2) << "at once";
  hub->stop_waiting();
  EXPECT_EQ(calls, 102);
}

TEST(ServerFolder, OfAFinishedPlanIsNotExtended) {
  const federation::Setup setup = federation::small_setup(config("fedavg"));
  const federation::FederationPlan plan = plan_of(setup);
  const TempFolder folder;
  run_at_homes(setup, plan, folder.path());
  const fs::path server = folder / "server";
  const std::string before = read_file(server / "config.toml");
  const federation::Setup longer = federation::small_setup(config("fedavg", 3));
  EXPECT_USER_ERROR(Server(server, plan_of(longer), [] { return true; }), "belongs to another plan");
  EXPECT_EQ(read_file(server / "config.toml"), before);
}

TEST_F(HubTest, AFolderBelongsToOnePlan) {
  hub();
  const federation::FederationPlan other = plan_of(setup_, "deadline = 3\n");
  EXPECT_THROW(Hub(folder_.path() / "server", other), UserError);
}

}  // namespace
}  // namespace sotto::serve

// What a home does not allow, over a real connection: the server hears nothing of it, not even its name.
#include "../serve/at_home.h"
#include "privacy/ledger.h"
#include "remote/client.h"
#include "remote/service.h"
#include "remote/session.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

namespace sotto::remote {
namespace {

constexpr const char* kMethod = "ldp-fedavg";

std::string config(const std::string& method, int rounds = 2, int clients = 2) {
  return fmt::format(
      "rounds = {}\n[data]\nclients = {}\ntest_fraction = 0.25\n[data.schema]\ncolumns = [{{name = \"x\", kind = "
      "\"number\", range = [-3, 3]}}, {{name = \"label\", kind = \"label\", values = [\"no\", \"yes\"]}}]\n"
      "[model]\nname = \"mlp\"\nhidden = [4]\n[federation]\nbatch = 10\nlr = 0.2\n[method]\nname = {}\n",
      rounds, clients, method);
}

constexpr const char* kPrivacy = "[privacy]\nepsilon = 4.0\ndelta = 1e-4\nadjacency = \"zero-out\"\n";

std::string sound_config(int rounds = 2, int clients = 2) {
  return config(fmt::format("\"{}\"", kMethod), rounds, clients) + kPrivacy;
}

federation::FederationPlan plan_from(const std::string& toml, const std::string& serve = "") {
  return {config::parse_run_spec(toml, "test.toml", {}), serve::table("records = 30\nleast_records = 25\n", "declared"),
          serve::table(serve, "serve")};
}

class Refusals : public ::testing::Test {
 protected:
  Refusals() {
    std::string records = "x,label\n";
    for (int i = 0; i < 40; ++i) records += fmt::format("{:.2f},{}\n", 0.1 * i - 2, i < 20 ? "no" : "yes");
    make_folder(home());
    write_file_atomically(home() / "records.csv", records);
    allow("");
  }

  fs::path home() const { return folder_ / "home"; }
  void allow(const std::string& more, const std::string& methods = "\"ldp-fedavg\"") {
    write_file_atomically(home() / "policy.toml",
                          fmt::format("[data]\nname = \"custom\"\npath = \"records.csv\"\n[budget]\nepsilon = 4.0\n"
                                      "delta = 1e-4\nadjacency = \"zero-out\"\n[allow]\nmethods = [{}]\ndeclare = "
                                      "[\"records\"]\nnoise = \"replay\"\n{}[server]\nname = \"home\"\n",
                                      methods, more));
  }
  SessionResult take_part(int port) const {
    return remote::take_part({.home = home(),
                              .address = fmt::format("127.0.0.1:{}", port),
                              .insecure = true,
                              .patience = 10,
                              .stop = [] { return false; },
                              .agree = {},
                              .round_done = {}});
  }

  // In the home's ledger.
  int64_t rows() const {
    if (!fs::exists(home() / "ledger.sqlite")) return 0;
    return privacy::Ledger(home() / "ledger.sqlite", privacy::Ledger::Mode::kRead).rows();
  }

  void expect_refused(const federation::FederationPlan& plan, const std::string& why) {
    const fs::path folder = folder_ / fmt::format("server-{}", plan.short_hash());
    serve::Hub hub(folder, plan);
    hub.cohort(1, [] { return std::vector<int64_t>{0, 1}; });
    hub.publish(plan.setup().method().make_server(plan.setup().context())->open(), false);
    const Service service(hub, plan, {.address = "127.0.0.1:0", .server = {}, .authority_pem = ""});
    const int64_t rows_before = rows();
    try {
      take_part(service.port());
      ADD_FAILURE() << "not refused; expected: " << why;
    } catch (const member::NotAllowed& refusal) {
      EXPECT_THAT(refusal.what(), ::testing::HasSubstr(why));
    }
    EXPECT_TRUE(hub.status().empty()) << "the server heard of the home";
    io::Database database(folder / "server.sqlite", io::Database::Mode::kRead);
    for (const char* table : {"offers", "uploads"}) {
      io::Statement count(database, fmt::format("SELECT COUNT(*) FROM {}", table));
      count.next();
      EXPECT_EQ(count.integer(0), 0) << table;
    }
    EXPECT_TRUE(fs::is_empty(folder / "spool" / "000001"));
    EXPECT_EQ(rows(), rows_before);
  }

  test::TempFolder folder_;
};

TEST_F(Refusals, AMethodInTheClear) {
  const federation::FederationPlan plan = plan_from(config("\"fedavg\""));
  expect_refused(plan, "allow.methods");
  allow("", "\"fedavg\"");
  expect_refused(plan, "no privacy");
}

TEST_F(Refusals, APrintedVariant) {
  allow("", "\"nbafl\"");
  expect_refused(plan_from(config("\"nbafl\"\nvariant = \"paper\"") +
                           "[privacy]\nepsilon = 4.0\ndelta = 1e-4\nadjacency = \"replace\"\n"),
                 "allow.variants");
}

TEST_F(Refusals, OneParticipationTooMany) {
  allow("most_participations = 1\n");
  expect_refused(plan_from(sound_config()), "most_participations");
  allow("most_participations = 2\n");
  expect_refused(plan_from(sound_config(3)), "most_participations");
}

TEST_F(Refusals, ASecondFederationOnceTheBudgetIsSpent) {
  const federation::FederationPlan first = plan_from(sound_config(1, 1));
  {
    serve::Server server(folder_ / "first", first, [] { return false; });
    const Service service(server.hub(), first, {.address = "127.0.0.1:0", .server = {}, .authority_pem = ""});
    std::thread rounds([&] {
      while (server.next_round()) {
      }
      server.finish();
    });
    const SessionResult result = take_part(service.port());
    rounds.join();
    ASSERT_TRUE(result.finished);
    EXPECT_GT(result.spent_epsilon, 3);
    mark_reported(result);
  }
  expect_refused(plan_from(sound_config()), "its budget is");
  // Nor does the first one under other terms pass for it.
  expect_refused(plan_from(sound_config(1, 1), "deadline = 3\n"), "its budget is");
}

TEST_F(Refusals, APlanThatWasNotShown) {
  const federation::FederationPlan plan = plan_from(sound_config());
  const federation::FederationPlan shown = plan_from(sound_config(), "deadline = 3\n");
  serve::Hub hub(folder_ / "server", plan);
  const Service service(hub, plan, {.address = "127.0.0.1:0", .server = {}, .authority_pem = ""});
  Client client(fmt::format("127.0.0.1:{}", service.port()), std::nullopt, "home");
  EXPECT_THROW(client.join(shown.hash()), UserError);
  EXPECT_TRUE(hub.status().empty());
}

}  // namespace
}  // namespace sotto::remote

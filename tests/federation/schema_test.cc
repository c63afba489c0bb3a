// Tables whose schema was learnt from the clients' records: no release on them has a proof.
#include "../data/make_files.h"
#include "../support/expect_user_error.h"
#include "../support/temp_folder.h"
#include "small_run.h"

#include <algorithm>
#include <cmath>

namespace sotto::federation {
namespace {

constexpr const char* kWhy = "the table's schema was inferred from the clients' records; declare data.schema";

class Tables : public ::testing::Test {
 protected:
  Tables() {
    std::string rows = "a,b,label\n";
    RandomStream stream(1, "table");
    for (int i = 0; i < 60; ++i) rows += fmt::format("{:.3f},{:.3f},{}\n", stream.normal(), stream.normal(), i % 2);
    test::write_bytes(folder_ / "p.csv", rows);
  }

  federation::Setup setup(const std::string& schema, const std::string& method = "ldp-fedavg",
                          bool is_private = true) const {
    const std::string toml = "rounds = 2\n[federation]\nbatch = 8\n[method]\nname = \"" + method + "\"\n" +
                             needed_options(method) + (is_private ? privacy_terms(method) : "") +
                             "[model]\nname = \"logistic\"\n[data]\nname = \"custom\"\npath = \"" +
                             (folder_ / "p.csv").string() + "\"\nclients = 3\n" + schema;
    return federation::Setup(config::parse_run_spec(toml, "test.toml", {}));
  }

  static constexpr const char* kDeclared =
      "schema = {columns = [{name = \"a\", kind = \"number\", range = [-3, 3]}, {name = \"b\", kind = \"number\", "
      "range = [-3, 3]}, {name = \"label\", kind = \"label\", values = [\"0\", \"1\"]}]}\n";
  const test::TempFolder folder_;
};

TEST_F(Tables, APrivateRunNeedsADeclaredSchema) {
  EXPECT_USER_ERROR(setup(""), "data.schema: a private run needs the ranges and categories");
  EXPECT_USER_ERROR(setup("", "dp-fedavg"), "--schema` writes a template");
  EXPECT_EQ(setup("", "fedavg", false).why_unproven(), kWhy) << "without [privacy] nothing is promised";
  EXPECT_EQ(setup(kDeclared).why_unproven(), "");
}

TEST_F(Tables, ADeclaredSchemaLeavesReleasesProven) {
  const auto declared = setup(kDeclared);
  privacy::Ledger ledger;
  run(declared, ledger);
  for (const auto& channel : declared.plan_for(0)) EXPECT_EQ(channel.terms().why_unproven, "");
  for (const auto& event : ledger.events()) EXPECT_EQ(event.why_unproven, "");
}

TEST_F(Tables, AnInferredSchemaLeavesNoReleaseProven) {
  for (const char* method : {"ldp-fedavg", "dp-fedavg"}) {
    const auto inferred = setup("schema = \"inferred\"\n", method);
    privacy::Ledger ledger;
    run(inferred, ledger);
    const methods::ReleasePlan plan = inferred.plan_for(0);
    ASSERT_FALSE(plan.empty());
    bool said = false;
    for (const auto& channel : plan) {
      EXPECT_NE(channel.terms().why_unproven, "") << channel.terms().what;
      said = said || channel.terms().why_unproven == kWhy;
    }
    EXPECT_TRUE(said) << method;
    ASSERT_FALSE(ledger.events().empty());
    for (const auto& event : ledger.events()) {
      EXPECT_NE(event.why_unproven, "");
      EXPECT_TRUE(std::any_of(plan.begin(), plan.end(), [&](const auto& channel) { return channel.makes(event); }));
    }
    // What clients see of dp-fedavg is its noised model alone; that it was trusted with more is the server's affair.
    for (const auto& [client, tally] : ledger.tallies("clients")) {
      const privacy::Guarantee guarantee = tally.guarantee(1e-3);
      EXPECT_TRUE(std::isinf(guarantee.proven)) << method;
      EXPECT_THAT(guarantee.why_unproven, ::testing::Contains(kWhy)) << method;
    }
  }
}

}  // namespace
}  // namespace sotto::federation

// Sound methods keep their promises; flaws of printed ones are found.
#include "audit/method_audits.h"
#include "audit/whole_run.h"
#include "base/error.h"
#include "base/parallel.h"

#include <gtest/gtest.h>

#include <set>

namespace sotto::audit {
namespace {

TEST(Methods, SoundOnesAreConsistentAndFlawsAreFound) {
  const std::set<std::string> sound = {"ldp-fedavg", "dp-fedavg", "fedproto"};
  std::set<std::string> flawed;
  for (const MethodAudit& row : method_audits()) {
    if (row.flaw.empty() && (row.variant != "sound" || !sound.contains(row.method))) continue;
    const Case subject = row.make();
    const Outcome outcome = audit(subject, {.trials = row.flaw.empty() ? 800 : 3000, .threads = available_threads()});
    fmt::print("{:24} {:6} claimed {:8.3f} proven {:8.3f} audited {:8.3f} ({}; {}) {:.1f} s\n", row.method, row.variant,
               subject.claimed, subject.proven, outcome.epsilon(), subject.what, outcome.finding.statistic,
               outcome.seconds);
    EXPECT_NE(outcome.verdict(), Verdict::kBroken) << row.method;
    if (!row.flaw.empty()) {
      flawed.insert(row.method);
      EXPECT_EQ(outcome.verdict(), Verdict::kRefuted) << row.method << ": " << row.flaw;
    }
  }
  EXPECT_EQ(flawed.count("pac-dp") + flawed.count("ladp-fl"), 2U);
}

std::string method(const std::string& name) {
  return fmt::format("[method]\nname = \"{}\"\n[privacy]\nepsilon = 1\ndelta = 1e-5\nadjacency = \"replace\"\n", name);
}

TEST(WholeRun, CanariesAreFoundWithoutNoiseAndNotWithIt) {
  const auto clear =
      proving_ground("[method]\nname = \"fedavg\"\n[federation]\nbatch = 24\nlr = 1\nlocal_epochs = 20\n");
  const WholeRunOutcome found = audit_whole_run(*clear, {.canaries = 48});
  EXPECT_EQ(found.canaries, 48);
  EXPECT_GT(found.bound.epsilon, 0.2);
  const WholeRunOutcome hidden = audit_whole_run(*proving_ground(method("ldp-fedavg")), {.canaries = 48});
  EXPECT_LE(hidden.bound.epsilon, hidden.proven);
  EXPECT_LE(hidden.proven, 1.0);
  EXPECT_GT(hidden.proven, 0.98);
}

TEST(WholeRun, ClientLevelPrivacyIsRefused) {
  EXPECT_THROW(audit_whole_run(*proving_ground("[method]\nname = \"dp-fedavg\"\n[privacy]\nepsilon = 1\ndelta = "
                                               "1e-5\nadjacency = \"add-remove\"\nunit = \"client\"\nobserver = "
                                               "\"clients\"\n"),
                               {}),
               UserError);
}

}  // namespace
}  // namespace sotto::audit

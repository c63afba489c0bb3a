// Sound methods keep their promises; flaws of printed ones are found.
#include "audit/method_audits.h"
#include "audit/whole_run.h"
#include "base/error.h"
#include "base/parallel.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace sotto::audit {
namespace {

TEST(FlawsOfMethods, AreFoundAndSoundOnesAreConsistent) {
  const std::set<std::string> sound = {"ldp-fedavg", "dp-fedavg", "fedproto", "dp-fpl"};
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
  for (const char* name : {"pac-dp", "ladp-fl", "dp-fpl", "fedproto", "fedplvm", "nbafl"}) {
    EXPECT_TRUE(flawed.contains(name)) << name;
  }
}

// Of what is sent in the clear no ε is claimed or proven, and an audit finds as much as trials can show.
TEST(Methods, NothingIsPromisedInTheClear) {
  std::set<std::string> clear;
  for (const MethodAudit& row : method_audits()) {
    if (row.note != "without noise") continue;
    clear.insert(row.method);
    const Case subject = row.make();
    EXPECT_TRUE(std::isinf(subject.claimed) && std::isinf(subject.proven)) << row.method;
    EXPECT_GT(audit(subject, {.trials = 800, .threads = available_threads()}).epsilon(), 3) << row.method;
  }
  EXPECT_EQ(clear, (std::set<std::string>{"fedavg", "fedprox"}));
}

// A lower bound may be too high by bad luck, at 95 % confidence in one seed of twenty. At this budget few trials show
// whether a method has half of the noise that it needs.
TEST(PromisesOfMethods, AreKeptInNineteenOfTwentySeeds) {
  constexpr int seeds = 20;
  constexpr double epsilon = 16;
  int methods = 0, seen = 0;
  for (const MethodAudit& row : method_audits(epsilon)) {
    if (row.variant != "sound") continue;
    const Case subject = row.make();
    if (std::isinf(subject.proven)) continue;  // in the clear
    EXPECT_LE(subject.proven, epsilon) << row.method;
    int above = 0, large = 0;
    for (uint64_t seed = 1; seed <= seeds; ++seed) {
      const double found = audit(subject, {.trials = 36, .pilots = 6, .seed = seed * 1000003}).epsilon();
      above += found > subject.proven ? 1 : 0;
      large += found > epsilon / 8 ? 1 : 0;
    }
    EXPECT_LE(above, 1) << row.method << ": " << subject.what;
    ++methods;
    seen += large > seeds / 2 ? 1 : 0;
  }
  EXPECT_GT(methods, 20);
  EXPECT_GT(seen, methods / 2) << "an audit that sees nothing proves nothing";
}

// Counting sees nothing of these; the curve of their kind does.
TEST(SecretBatchesOfMethods, AreAuditedToAThirdOfTheirBudget) {
  int rows = 0;
  for (const MethodAudit& row : method_audits()) {
    const bool secret = row.note.find("batches") != std::string::npos || row.method == "rpdp-fl";
    if (row.variant != "sound" || !(secret || row.method == "nbafl")) continue;
    const Case subject = row.make();
    const Outcome outcome = audit(subject, {.trials = 3000, .threads = available_threads()});
    EXPECT_EQ(outcome.verdict(), Verdict::kConsistent) << row.method << ", " << row.note;
    EXPECT_GT(outcome.epsilon(), 0.3 * subject.proven) << row.method << ", " << row.note;
    EXPECT_EQ(outcome.ground(), secret ? Ground::kFamily : Ground::kCurve) << row.method << ", " << row.note;
    ++rows;
  }
  EXPECT_EQ(rows, 9);
}

std::string method(const std::string& name) {
  return fmt::format("[method]\nname = \"{}\"\n[privacy]\nepsilon = 1\ndelta = 1e-5\nadjacency = \"replace\"\n", name);
}

TEST(WholeRun, CanariesAreFoundWithoutNoiseAndNotWithIt) {
  const auto clear =
      audit_federation("[method]\nname = \"fedavg\"\n[federation]\nbatch = 24\nlr = 1\nlocal_epochs = 20\n");
  const WholeRunOutcome found = audit_whole_run(*clear, {.canaries = 48});
  EXPECT_EQ(found.canaries, 48);
  EXPECT_GT(found.bound.epsilon, 0.2);
  const WholeRunOutcome hidden = audit_whole_run(*audit_federation(method("ldp-fedavg")), {.canaries = 48});
  EXPECT_LE(hidden.bound.epsilon, hidden.proven);
  EXPECT_LE(hidden.proven, 1.0);
  EXPECT_GT(hidden.proven, 0.98);
}

// What is uploaded is no model: canaries are known by what they change in it.
TEST(WholeRun, CanariesArePrototypesAndPromptsToo) {
  const std::string prototypes = "[method]\nname = \"fedproto\"\nwidth = 4\nhead = [8]\nradius = 1\n";
  const std::string prompts = "[method]\nname = \"dp-fpl\"\nencoder = \"tiny\"\nlength = 2\nrank = 2\n";
  const std::string budget = "[privacy]\nepsilon = {}\ndelta = 1e-5\nadjacency = \"replace\"\n";
  for (const std::string& what : {prototypes, prompts}) {
    const WholeRunOutcome hidden =
        audit_whole_run(*audit_federation(what + fmt::format(fmt::runtime(budget), 1)), {.canaries = 24});
    EXPECT_LE(hidden.bound.epsilon, hidden.proven) << what;
    const WholeRunOutcome found =
        audit_whole_run(*audit_federation(what + fmt::format(fmt::runtime(budget), 1000)), {.canaries = 24});
    EXPECT_GT(found.bound.epsilon, 0.5) << what;
    EXPECT_LE(found.bound.epsilon, found.proven) << what;
  }
}

TEST(WholeRun, ClientLevelPrivacyIsRefused) {
  EXPECT_THROW(audit_whole_run(*audit_federation("[method]\nname = \"dp-fedavg\"\n[privacy]\nepsilon = 1\ndelta = "
                                                 "1e-5\nadjacency = \"add-remove\"\nunit = \"client\"\nobserver = "
                                                 "\"clients\"\n"),
                               {}),
               UserError);
}

}  // namespace
}  // namespace sotto::audit

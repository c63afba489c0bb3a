// Audits and attacks as users ask for them.
#include "program.h"

namespace sotto {
namespace {

class Attack : public Program {
 protected:
  Attack() {
    write("private.toml", "rounds = 2", "",
          "[federation]\nbatch = 48\n[method]\nname = \"ldp-fedavg\"\n" + budget("replace") +
              "[record]\nuploads = true\n");
  }

  static std::string budget(const std::string& adjacency) {
    return fmt::format("[privacy]\nepsilon = 3.0\ndelta = 1e-3\nadjacency = \"{}\"\n", adjacency);
  }

  void run(const std::string& config, const std::string& more = "") const {
    const Result result = sotto(fmt::format("run {}.toml --out {} --quiet {}", config, config, more));
    ASSERT_EQ(result.exit_code, 0) << result.err;
  }

  json attacked(const std::string& run, const std::string& name, const std::string& more = "") const {
    const Result result = sotto(fmt::format("attack {} --attack {} --json --quiet {}", run, name, more));
    EXPECT_EQ(result.exit_code, 0) << run << " " << name << "\n" << result.err;
    if (result.exit_code != 0) return {};
    const json written = json::parse(read_file(folder_ / run / "attacks" / (name + ".json")));
    EXPECT_EQ(json::parse(result.out), written);
    return written;
  }

  static void expect_membership(const json& figures) {
    for (const json& part : {figures, figures.at("baseline")}) {
      EXPECT_GE(part.at("auc"), 0.0);
      EXPECT_LE(part.at("auc"), 1.0);
      const auto& roc = part.at("roc");
      EXPECT_EQ(roc.at("low").size(), roc.at("true_positive_rate").size());
      EXPECT_EQ(roc.at("high").size(), roc.at("true_positive_rate").size());
    }
  }
};

TEST_F(Attack, AnAuditOfARunIsPrintedAndKept) {
  run("private");
  const Result text = sotto("audit private --trials 40 --canaries 40");
  ASSERT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("proven"));
  EXPECT_THAT(text.out, HasSubstr("consistent"));
  const Result machine = sotto("audit private --trials 40 --canaries 40 --json --quiet");
  ASSERT_EQ(machine.exit_code, 0) << machine.err;
  const json kept = json::parse(read_file(folder_ / "private" / "audit.json"));
  const json printed = json::parse(machine.out);
  ASSERT_EQ(kept["entries"].size(), 2U) << "one release, and the whole run";
  EXPECT_EQ(kept["confidence"], 0.95);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(kept["entries"][i]["audited_epsilon"], printed["entries"][i]["audited_epsilon"]);
    EXPECT_LE(kept["entries"][i]["audited_epsilon"], 3.0);
  }
  EXPECT_EQ(kept["entries"][1]["canaries"], 40);
}

TEST_F(Attack, AnAuditNeedsSomethingToAudit) {
  expect_user_error("audit", "--all");
  expect_user_error("audit private.toml --client 5", "clients 0 to 4");
}

TEST_F(Attack, ModelsAndUploadsAreAttacked) {
  run("private");
  const json lira = attacked("private", "lira", "--shadows 4 --records 20");
  expect_membership(lira);
  EXPECT_EQ(lira["shadows"], 4);
  EXPECT_TRUE(lira["client"].is_null()) << "the global model";
  const json personal = attacked("private", "shadow", "--shadows 4 --records 20 --client 2");
  expect_membership(personal);
  EXPECT_EQ(personal["client"], 2);
  const Result text = sotto("attack private --attack lira --shadows 4 --records 20");
  EXPECT_THAT(text.out, HasSubstr("without privacy"));
  const json adam = attacked("private", "gradient-inversion", "--steps 20");
  const json lbfgs = attacked("private", "gradient-inversion", "--steps 20 --optimizer lbfgs");
  EXPECT_NE(adam["cosine"], lbfgs["cosine"]);
  expect_user_error("attack private --attack hijacking", "no prototypes");
}

TEST_F(Attack, PromptsAreAttackedByShadows) {
  write("prompts.toml", "rounds = 2", "",
        "[federation]\nbatch = 48\n[method]\nname = \"dp-fpl\"\nencoder = \"tiny\"\nlength = 2\nrank = 2\n" +
            budget("replace"));
  run("prompts");
  const json lira = attacked("prompts", "lira", "--shadows 4 --records 20");
  expect_membership(lira);
  EXPECT_EQ(lira["client"], 0) << "prompts are personal";
  expect_user_error("attack prompts --attack gan", "lira and shadow");
}

TEST_F(Attack, PrototypesAreAttackedInTheirOwnSpace) {
  for (const char* variant : {"sound", "paper"}) {
    write("proto.toml", "rounds = 2", "",
          fmt::format(
              "[federation]\nbatch = 48\n[method]\nname = \"fedproto\"\nvariant = \"{}\"\nwidth = 4\nhead = [8]\n",
              variant) +
              budget("replace-same-label") + "[record]\nuploads = true\n");
    fs::remove_all(folder_ / "proto");
    run("proto", "--set model.name=mlp");
    expect_membership(attacked("proto", "prototype-membership", "--records 20"));
    const json hijacked = attacked("proto", "hijacking", "--steps 60");
    EXPECT_GT(hijacked["baseline"]["cosine"], 0.9) << variant << ": inputs with the features of clean prototypes";
    EXPECT_GE(hijacked["top1_hit"], 0.0);
    EXPECT_THAT(hijacked["extractor"].get<std::string>(), HasSubstr("prototypes"));
    const json printed = attacked("proto", "hijacking", "--as-printed --steps 60");
    EXPECT_EQ(printed["as_printed"], true);
    EXPECT_NE(printed["baseline"]["cosine"], hijacked["baseline"]["cosine"]);
  }
  expect_membership(attacked("proto", "prototype-membership", "--records 20 --round 1"));
  expect_user_error("attack proto --attack hijacking --round 3", "record.uploads=true");
  expect_user_error("attack proto --attack hijacking --as-printed --optimizer lbfgs", "adam");
}

TEST_F(Attack, PrototypesOfARoundBeforeTheLastAreAttackedInTheSpaceOfThatRound) {
  write("closing.toml", "rounds = 3", "",
        "[federation]\nbatch = 48\n[method]\nname = \"fedproto\"\nvariant = \"paper\"\nwidth = 4\nhead = [8]\n"
        "closing_round = true\n" +
            budget("replace-same-label") + "[record]\nuploads = true\n");
  run("closing", "--set model.name=mlp");
  const json found = attacked("closing", "prototype-membership", "--records 20");
  expect_membership(found);
  EXPECT_EQ(found["auc"], attacked("closing", "prototype-membership", "--records 20 --round 2")["auc"])
      << "the last round sends nothing";
  EXPECT_GT(attacked("closing", "hijacking", "--steps 60")["baseline"]["cosine"], 0.9);
  fs::remove_all(folder_ / "closing");
  run("closing", "--set model.name=mlp --set privacy.noise=secure");
  expect_user_error("attack closing --attack hijacking", "cannot be made again");
}

TEST_F(Attack, MistakesAreOneLine) {
  run("private", "--set record.uploads=false");
  expect_user_error("attack private --attack lyra", "lira");
  expect_user_error("attack private --attack gradient-inversion", "record.uploads=true");
  expect_user_error("attack private --attack lira --client 7", "clients 0 to 4");
  expect_user_error("attack private --attack lira --as-printed", "no such form");
  write_file_atomically(folder_ / "notes.pt", "not a module");
  expect_user_error("attack private --attack gan --extractor notes.pt", "TorchScript");
}

}  // namespace
}  // namespace sotto

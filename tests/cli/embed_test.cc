// Pictures of features, and what the plug-ins of prototype frameworks cost, as users ask for them.
#include "program.h"

namespace sotto {
namespace {

class Embed : public Program {
 protected:
  Embed() {
    write("proto.toml", "rounds = 3", "",
          "[method]\nname = \"fedproto\"\nwidth = 4\nhead = [8]\n"
          "[privacy]\nepsilon = 3.0\ndelta = 1e-3\nadjacency = \"replace\"\n");
  }
};

TEST_F(Embed, PlacesHeldOutRecordsAfterTheFirstRoundAndTheLast) {
  ASSERT_EQ(sotto("run proto.toml --out proto --quiet --set model.name=mlp").exit_code, 0);
  const Result result = sotto("embed proto --records 40 --json --quiet");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const json pictures = json::parse(read_file(folder_ / "proto" / "embedding.json"));
  ASSERT_EQ(pictures.size(), 2U);
  EXPECT_EQ(json::parse(result.out), pictures);
  EXPECT_EQ(pictures[0]["title"], "Features after round 1");
  EXPECT_EQ(pictures[1]["title"], "Features after round 3");
  for (const json& picture : pictures) {
    EXPECT_EQ(picture["x"].size(), 40U);
    EXPECT_EQ(picture["y"].size(), 40U);
    EXPECT_EQ(picture["label"].size(), 40U);
    EXPECT_EQ(picture["classes"].size(), 3U);
  }
  EXPECT_EQ(pictures[0]["label"], pictures[1]["label"]) << "the same records";
  EXPECT_NE(pictures[0]["x"], pictures[1]["x"]) << "seen by other models";
  EXPECT_EQ(sotto("report proto -o page.html --quiet").exit_code, 0);
  EXPECT_THAT(read_file(folder_ / "page.html"), HasSubstr("Features after round 3"));
}

TEST_F(Embed, QuietSaysNothing) {
  ASSERT_EQ(sotto("run proto.toml --out proto --quiet --set model.name=mlp").exit_code, 0);
  EXPECT_THAT(sotto("embed proto --records 40").out, HasSubstr("embedding.json: two pictures"));
  const Result quiet = sotto("embed proto --records 40 --quiet");
  EXPECT_EQ(quiet.exit_code, 0) << quiet.err;
  EXPECT_EQ(quiet.out, "");
}

TEST_F(Embed, ARunThatIsNotThereIsOneLine) {
  expect_user_error("embed nowhere", "nowhere");
}

TEST_F(Embed, TheBenchSaysWhatEveryStageCosts) {
  const Result result = sotto("bench vpdr --batch 16 --patch 16 --repeats 1 --json --quiet");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const json figures = json::parse(result.out);
  for (const char* name : {"prototypes_ms", "vpp_scores_ms", "fine_tuning_ms"}) EXPECT_GT(figures[name], 0.0) << name;
  EXPECT_DOUBLE_EQ(figures["vpp_overhead"].get<double>(),
                   figures["vpp_extra_ms"].get<double>() / figures["prototypes_ms"].get<double>());
  EXPECT_DOUBLE_EQ(figures["dcr_overhead"].get<double>(),
                   figures["dcr_extra_ms"].get<double>() / figures["fine_tuning_ms"].get<double>());
}

}  // namespace
}  // namespace sotto

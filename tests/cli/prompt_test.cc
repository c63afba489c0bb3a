// Prompts as users learn, hand on and use them.
#include "../data/make_files.h"
#include "program.h"

namespace sotto {
namespace {

class Prompt : public Program {
 protected:
  Prompt() {
    write_file_atomically(folder_ / "photo.png", test::plain_png(31, 7, {200, 30, 30}));
    write_file_atomically(folder_ / "grey.jpg", test::jpeg_bytes(9, 40, {90}));
    write("prompt.toml", "rounds = 2", "",
          "[federation]\nlr = 0.01\n[privacy]\nepsilon = 4.0\ndelta = 1e-3\nadjacency = \"replace\"\n[method]\nname = "
          "\"dp-fpl\"\nencoder = \"tiny\"\nlength = 8\nrank = 2\n");
  }
};

TEST_F(Prompt, IsLearntExportedAndUsed) {
  const Result run = sotto("run prompt.toml --out run --quiet");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_LE(summary("run")["privacy"]["proven_epsilon"]["max"], 4.0);
  EXPECT_EQ(summary("run")["model"], "tiny");
  const Result exported = sotto("export run --client 1 -o prompt.safetensors --json");
  ASSERT_EQ(exported.exit_code, 0) << exported.err;
  EXPECT_EQ(json::parse(exported.out)["parameters"], 8 * 32);
  EXPECT_EQ(json::parse(exported.out).at("not_private"), nullptr) << "noisy steps made it";
  const Result used = sotto("predict --prompt prompt.safetensors --image photo.png grey.jpg --top 3 --json");
  ASSERT_EQ(used.exit_code, 0) << used.err;
  const json answers = json::parse(used.out);
  ASSERT_EQ(answers.size(), 2U);
  for (const json& answer : answers) {
    ASSERT_EQ(answer["classes"].size(), 3U);
    double total = 0;
    for (const json& one : answer["classes"]) total += one["probability"].get<double>();
    EXPECT_NEAR(total, 1.0, 1e-5);
  }
  EXPECT_THAT(sotto("predict --prompt prompt.safetensors --image photo.png").out, HasSubstr("probability"));
}

TEST_F(Prompt, LearntInTheClearIsNotPrivate) {
  ASSERT_EQ(sotto("run prompt.toml --out run --quiet --set method.in_the_clear=true --set "
                  "'privacy.unproven=[\"prompts\"]'")
                .exit_code,
            0);
  const Result exported = sotto("export run --client 1 -o prompt.safetensors --json");
  ASSERT_EQ(exported.exit_code, 0) << exported.err;
  EXPECT_THAT(json::parse(exported.out).at("not_private").get<std::string>(), HasSubstr("without noise"));
}

TEST_F(Prompt, MistakesAreSaid) {
  ASSERT_EQ(sotto("run prompt.toml --out run --quiet").exit_code, 0);
  ASSERT_EQ(sotto("export run --client 1 -o prompt.safetensors").exit_code, 0);
  expect_user_error("export run --client 1 -o prompt.pt", "safetensors");
  expect_user_error("export run -o prompt.safetensors", "--client");
  expect_user_error("predict --prompt prompt.safetensors", "--image");
  expect_user_error("predict --prompt prompt.safetensors --image nothing.png", "nothing.png");
  expect_user_error("predict --prompt prompt.safetensors --image table.csv", "table.csv");
  expect_user_error("predict --prompt table.csv --image photo.png", "table.csv");
  expect_user_error("predict --image photo.png", "--prompt");
  expect_user_error("predict run --prompt prompt.safetensors --image photo.png", "--prompt");
}

TEST_F(Prompt, BenchHasBothPlacesToClipAt) {
  const Result result = sotto("bench prompt --encoder tiny --length 4 --rank 2 --batch 8 --repeats 3 --json --quiet");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const json figures = json::parse(result.out);
  EXPECT_LT(figures["text_features_ratio"], figures["prompt_ratio"]);
  EXPECT_GT(figures["prompt_ratio"], 2.0);
}

}  // namespace
}  // namespace sotto

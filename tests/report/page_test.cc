#include "report/page.h"

#include "../support/expect_user_error.h"
#include "../support/temp_folder.h"
#include "base/files.h"
#include "base/statistics.h"
#include "report/comparison.h"
#include "report/page_shell.h"
#include "report/run_extras.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace sotto::report {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

json finished(double accuracy, json epsilon) {
  return {
      {"summary",
       {{"accuracy", {{"mean", accuracy}}},
        {"privacy", {{"claimed_epsilon", epsilon}, {"proven_epsilon", std::move(epsilon)}, {"basis", "simulated"}}}}}};
}

config::RunSpec private_spec(const std::string& method, double epsilon, uint64_t seed) {
  config::RunSpec spec;
  spec.method = method;
  spec.seed = seed;
  spec.method_options = "{}";
  spec.privacy.emplace();
  spec.privacy->epsilon = epsilon;
  spec.privacy->delta = 1e-5;
  spec.privacy->adjacency = privacy::Adjacency::kReplace;
  spec.privacy->budget_seed = seed;
  return spec;
}

TEST(Comparison, GroupsRunsThatDifferOnlyInTheirSeed) {
  std::vector<json> documents;
  std::vector<config::RunSpec> specs;
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    for (const double epsilon : {4.0, 1.0}) {
      specs.push_back(private_spec("ldp-fedavg", epsilon, seed));
      specs.back().name = std::to_string(seed);
      documents.push_back(finished(0.5 + 0.1 * epsilon + 0.01 * static_cast<double>(seed), {{"max", epsilon}}));
    }
  }
  const json value = compare(documents, specs);
  ASSERT_EQ(value["groups"].size(), 2U);
  EXPECT_EQ(value["groups"][0]["label"], "ε 1.0") << "by rising ε";
  EXPECT_EQ(value["groups"][0]["series"], "ldp-fedavg");
  EXPECT_EQ(value["groups"][1]["runs"], json({0, 2, 4, 6}));
  EXPECT_EQ(value["groups"][1]["proven_epsilon"], 4.0);
  const json& metric = value["metrics"]["accuracy/mean"];
  const auto low = metric["values"][0].get<std::vector<double>>(),
             high = metric["values"][1].get<std::vector<double>>();
  EXPECT_EQ(metric["mean"][0], mean(low));
  EXPECT_EQ(metric["std"][1], sample_std(high));
  EXPECT_EQ(metric["p"][0][1], mann_whitney_p(low, high));
  EXPECT_EQ(metric["p"][1][0], metric["p"][0][1]);
  EXPECT_LT(metric["p"][0][1].get<double>(), 0.05);
}

TEST(Comparison, ACopyIsNoFurtherSeed) {
  std::vector<json> documents;
  std::vector<config::RunSpec> specs;
  for (const double epsilon : {1.0, 4.0}) {
    for (int copy = 0; copy < 4; ++copy) {
      specs.push_back(private_spec("ldp-fedavg", epsilon, 1));
      documents.push_back(finished(0.1 * epsilon, {{"max", epsilon}}));
    }
  }
  const json metric = compare(documents, specs)["metrics"]["accuracy/mean"];
  EXPECT_EQ(metric["values"], json({{0.1}, {0.4}}));
  EXPECT_EQ(metric["p"][0][1], nullptr) << "one seed, no test";
}

TEST(Comparison, ALegendNamesAFewDifferences) {
  std::vector<config::RunSpec> specs = {private_spec("ldp-fedavg", 1, 1), private_spec("dp-fedavg", 4, 1)};
  specs[1].rounds = 99;
  specs[1].federation.lr = 0.7;
  specs[1].federation.batch = 7;
  specs[1].federation.local_epochs = 9;
  specs[1].data.clients = 3;
  const json value = compare({finished(0.5, nullptr), finished(0.6, nullptr)}, specs);
  EXPECT_EQ(value["groups"][0]["label"], "dp-fedavg, ε 4.0, clients 3, batch 7, local_epochs 9, … 2 more");
  const auto all = value["groups"][0]["settings"].get<std::string>();
  EXPECT_THAT(all, ::testing::StartsWith("dp-fedavg, ε 4.0, clients 3, batch 7, local_epochs 9, "));
  EXPECT_EQ(std::count(all.begin(), all.end(), ','), 6) << "and the other two: " << all;
}

TEST(Comparison, NamesOnlyWhatDiffers) {
  config::RunSpec clear = private_spec("fedavg", 1, 1);
  clear.privacy.reset();
  config::RunSpec noisy = private_spec("ldp-fedavg", 2, 1);
  noisy.method_options = R"({"clip":1.0})";
  config::RunSpec wide = noisy;
  wide.method_options = R"({"clip":5.0})";
  const json documents = {finished(0.9, nullptr), finished(0.7, {{"max", 2.0}}), finished(0.6, {{"max", 2.0}})};
  const json value = compare(documents, {clear, noisy, wide});
  std::vector<std::string> labels;
  for (const json& group : value["groups"]) labels.push_back(group["label"]);
  EXPECT_THAT(labels[0], HasSubstr("fedavg"));
  EXPECT_THAT(labels[0], Not(HasSubstr("ε")));
  EXPECT_THAT(labels[1], HasSubstr("clip 1.0"));
  EXPECT_THAT(labels[2], HasSubstr("clip 5.0"));
  EXPECT_EQ(value["groups"][0]["proven_epsilon"], nullptr);
}

TEST(Comparison, AGroupIsProvenIfEachOfItsRunsIs) {
  std::vector<json> documents;
  std::vector<config::RunSpec> specs;
  for (const double epsilon : {1.0, 4.0}) {
    for (uint64_t seed = 1; seed <= 2; ++seed) {
      specs.push_back(private_spec("ldp-fedavg", epsilon, seed));
      documents.push_back(finished(0.5, {{"max", epsilon}}));
      documents.back()["summary"]["privacy"]["basis"] = epsilon == 1.0 || seed == 2 ? "proven" : "simulated";
    }
  }
  const json groups = compare(documents, specs)["groups"];
  EXPECT_EQ(groups[0]["basis"], "proven");
  EXPECT_EQ(groups[1]["basis"], "simulated");
}

TEST(Comparison, UnfinishedRunsHaveNoValues) {
  const json value = compare({json{{"summary", nullptr}}, finished(0.5, nullptr)},
                             {private_spec("ldp-fedavg", 1, 1), private_spec("ldp-fedavg", 2, 1)});
  EXPECT_EQ(value["metrics"]["accuracy/mean"]["mean"][0], nullptr);
  EXPECT_EQ(value["metrics"]["accuracy/mean"]["p"][0][1], nullptr);
}

TEST(Page, NothingInTheDocumentBecomesMarkup) {
  const std::string html = page_html({{"name", "</script><script>alert(1)</script><!--"}});
  EXPECT_THAT(html, Not(HasSubstr("alert(1)</script>")));
  EXPECT_THAT(html, HasSubstr("\\u003c/script>"));
  EXPECT_THAT(page_html({{"name", "\xff\xfe"}}), HasSubstr("\xef\xbf\xbd")) << "bytes that are not UTF-8 are replaced";
}

TEST(Page, NeedsNothingElse) {
  const std::string shell(page_shell());
  EXPECT_THAT(shell, HasSubstr("default-src 'none'"));
  EXPECT_THAT(shell, Not(HasSubstr("<script src")));
  EXPECT_THAT(shell, Not(HasSubstr("<link rel=\"stylesheet\"")));
  EXPECT_LT(shell.size(), 2'000'000U);
}

class Extras : public ::testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) const {
    fs::create_directories((folder_ / name).parent_path());
    write_file_atomically(folder_ / name, text);
  }
  json extras() const { return run_extras(folder_.path(), {}); }

  const test::TempFolder folder_;
};

TEST_F(Extras, AreNullWhereThereIsNothing) {
  const json all = extras();
  for (const auto& [key, value] : all.items()) EXPECT_TRUE(value.is_null()) << key;
}

TEST_F(Extras, PicturesComeOnlyFromBesideTheirFile) {
  write("secret.png", "secret");
  write("attacks/own.png", "own");
  fs::create_symlink(folder_ / "secret.png", folder_ / "attacks/link.png");
  for (const std::string name : {"../secret.png", "/etc/passwd", "link.png", "..", "", "missing.png"}) {
    const json attack = {{"reconstructions", {{{"original", name}, {"reconstructed", "own.png"}}}}};
    write("attacks/a.json", attack.dump());
    EXPECT_USER_ERROR(extras(), "not a PNG file beside it");
  }
  write("attacks/a.json", R"({"reconstructions": [{"original": "own.png", "reconstructed": "own.png"}]})");
  EXPECT_EQ(extras()["attacks"][0]["reconstructions"][0]["original"], "data:image/png;base64,b3du");
  EXPECT_EQ(extras()["attacks"][0]["name"], "a");
  write("attacks/a.json", R"({"grid": "own.png", "baseline": {"grid": "own.png"}})");
  EXPECT_EQ(extras()["attacks"][0]["baseline"]["grid"], "data:image/png;base64,b3du");
  for (const char* wrong :
       {R"({"grid": "../own.png"})", R"({"baseline": {"grid": "link.png"}})", R"({"baseline": 3})",
        R"({"roc": {"false_positive_rate": [0, 1], "true_positive_rate": [0, 1], "low": [0], "high": [0, 1]}})",
        R"({"baseline": {"roc": {"false_positive_rate": [0, 1]}}})"}) {
    write("attacks/a.json", wrong);
    EXPECT_THROW(extras(), UserError) << wrong;
  }
}

TEST_F(Extras, FilesThatAreSomethingElseAreRefused) {
  write("audit.json", "[]");
  EXPECT_USER_ERROR(extras(), "audit.json is not a JSON object");
  write("audit.json", R"({"entries": [{"client": 1}]})");
  EXPECT_USER_ERROR(extras(), "audited_epsilon");
  fs::remove(folder_ / "audit.json");
  write("embedding.json", R"({"x": [1, 2], "y": [1], "label": [0, 0]})");
  EXPECT_USER_ERROR(extras(), "differ in length");
  write("embedding.json", R"({"x": [1], "y": ["one"], "label": [0]})");
  EXPECT_USER_ERROR(extras(), "not a list of numbers");
}

}  // namespace
}  // namespace sotto::report

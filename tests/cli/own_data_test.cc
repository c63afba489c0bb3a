// Own data, own features, and what people do with the results.
#include "program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

namespace sotto {
namespace {

using ::testing::Not;

std::string npy(const std::string& type, const std::string& shape, const std::string& data) {
  const std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}\n", type, shape);
  std::string bytes = "\x93NUMPY\x01";
  bytes += '\0';
  bytes += static_cast<char>(header.size() & 0xFFU);
  bytes += static_cast<char>(header.size() >> 8U);
  return bytes + header + data;
}

template <typename T>
void append(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

class OwnData : public Program {
 protected:
  // 120 records around a large common mean, three classes; x.npy and y.npy in the folder `arrays`.
  void write_arrays() {
    fs::create_directories(folder_ / "arrays");
    RandomStream stream(1, "arrays");
    std::string x, y;
    for (int i = 0; i < 120; ++i) {
      for (int j = 0; j < 4; ++j) append(x, static_cast<float>(100 + stream.normal() + (j == i % 3 ? 3 : 0)));
      append(y, static_cast<int32_t>(i % 3));
    }
    write_file_atomically(folder_ / "arrays" / "x.npy", npy("<f4", "(120, 4)", x));
    write_file_atomically(folder_ / "arrays" / "y.npy", npy("<i4", "(120,)", y));
    std::string centre;
    for (int j = 0; j < 4; ++j) append(centre, 100.0F);
    write_file_atomically(folder_ / "centre.npy", npy("<f4", "(4,)", centre));
    write_file_atomically(folder_ / "arrays.toml",
                          "rounds = 3\n[data]\nname = \"custom\"\npath = \"" + (folder_ / "arrays").string() +
                              "\"\nclients = 4\n[model]\nname = \"logistic\"\n[federation]\nlr = 0.5\n");
  }

  double accuracy(const std::string& run) const { return summary(run)["accuracy"]["mean"].get<double>(); }
};

TEST_F(OwnData, NumpyArraysAreADataset) {
  write_arrays();
  EXPECT_THAT(sotto("data show ./arrays").out, HasSubstr("120"));
  if (std::system("command -v python3 >/dev/null") != 0) GTEST_SKIP() << "python3, which makes a zip file, is missing";
  ASSERT_EQ(std::system(fmt::format("cd {}/arrays && python3 -c \"import zipfile; z = zipfile.ZipFile('../a.npz', 'w', "
                                    "zipfile.ZIP_DEFLATED); z.write('x.npy'); z.write('y.npy')\"",
                                    folder_.string())
                            .c_str()),
            0);
  const Result zipped = sotto("data show ./a.npz");
  EXPECT_EQ(zipped.exit_code, 0) << zipped.err;
  EXPECT_THAT(zipped.out, HasSubstr("120"));
}

TEST_F(OwnData, TruncatedArraysAreRefused) {
  write_arrays();
  const std::string whole = read_file(folder_ / "arrays" / "x.npy");
  write_file_atomically(folder_ / "arrays" / "x.npy", whole.substr(0, whole.size() - 1));
  expect_user_error("data show ./arrays", "truncated");
}

TEST_F(OwnData, FeaturesAreCentredAndScaledForEveryMethod) {
  write_arrays();
  const auto run = [&](const std::string& name, const std::string& settings) {
    const Result result = sotto(fmt::format("run arrays.toml --quiet --out {} {}", name, settings));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return accuracy(name);
  };
  const double raw = run("raw", "");
  EXPECT_LT(raw, 0.7) << "the common mean drowns what tells classes apart";
  EXPECT_GT(run("public", "--set data.centre=centre.npy"), 0.8);
  EXPECT_GT(run("record", "--set data.centre=record --set data.normalise=true --set rounds=20 --set federation.lr=5"),
            0.65);
  EXPECT_GT(run("own", "--set data.centre=own --set method.name=local-only --set rounds=10"), 0.7);
  expect_user_error("run arrays.toml --set data.centre=nowhere.npy", "nowhere.npy");
  expect_user_error("run arrays.toml --set data.centre=recrod", "data.centre");
  expect_user_error("run arrays.toml --set data.name=synthetic-digits --set data.path= --set data.normalise=true",
                    "no features");
}

TEST_F(OwnData, SettingsAreChosenOnValidationRecords) {
  const Result run = sotto("run config.toml --set rounds=2 --set data.validation=0.2 --out v --quiet");
  EXPECT_THAT(run.out, HasSubstr("\nvalidation "));
  EXPECT_TRUE(summary("v")["validation_accuracy"]["mean"].is_number());
  const Result sweep = sotto(
      "sweep config.toml --set rounds=1 --set data.validation=0.2 --grid federation.lr=0.01,0.5 --seeds 1 "
      "--metric validation_accuracy.mean --out s --format csv");
  EXPECT_EQ(sweep.exit_code, 0) << sweep.err;
  EXPECT_THAT(sotto("run config.toml --set rounds=1 --out w --quiet").out, Not(HasSubstr("validation")));
  expect_user_error("run config.toml --set data.validation=1", "data.validation");
}

TEST_F(OwnData, PersonalModelsAreTestedOnEverybodysClasses) {
  const Result run = sotto("run config.toml --set rounds=12 --set federation.global_test=50 --out g --quiet");
  EXPECT_THAT(run.out, HasSubstr("\nglobal test "));
  const json whole = summary("g");
  EXPECT_TRUE(whole["global_test_accuracy"]["mean"].is_number());
  EXPECT_EQ(whole["last_ten"]["evaluations"], 10);
  double sum = 0;
  const std::vector<std::string> lines = split(read_file(folder_ / "g" / "metrics.jsonl"), '\n');
  for (size_t i = 2; i < 12; ++i) sum += json::parse(lines[i])["evaluation"]["accuracy"]["mean"].get<double>();
  EXPECT_NEAR(whole["last_ten"]["accuracy"].get<double>(), sum / 10, 1e-12);
  const Result sweep = sotto(
      "sweep config.toml --set rounds=1 --set federation.global_test=50 --grid federation.lr=0.01,0.5 --seeds 1 "
      "--metric global_test_accuracy.mean --out s --format csv");
  EXPECT_EQ(sweep.exit_code, 0) << sweep.err;
  EXPECT_EQ(sotto("sweep config.toml --set rounds=1 --seeds 1 --metric last_ten.accuracy --out t").exit_code, 0);
  EXPECT_THAT(sotto("run config.toml --set rounds=1 --out w --quiet").out, Not(HasSubstr("global test")));
  EXPECT_FALSE(summary("w").contains("global_test_accuracy"));
}

TEST_F(OwnData, TheLastTenRoundsOfClientsThatLackClassesHaveMeansToo) {
  ASSERT_EQ(sotto("run config.toml --set rounds=12 --set data.partition=pathological --set data.classes_per_client=1 "
                  "--out p --quiet")
                .exit_code,
            0);
  const json last_ten = summary("p")["last_ten"];
  const std::vector<std::string> lines = split(read_file(folder_ / "p" / "metrics.jsonl"), '\n');
  for (const char* score : {"local_accuracy", "neighbour_accuracy"}) {
    double sum = 0;
    for (size_t i = 2; i < 12; ++i) sum += json::parse(lines[i])["evaluation"][score]["mean"].get<double>();
    EXPECT_NEAR(last_ten[score].get<double>(), sum / 10, 1e-12) << score;
  }
}

TEST_F(OwnData, RunsAreComparedClientByClient) {
  ASSERT_EQ(sotto("run config.toml --set rounds=1 --out one --quiet").exit_code, 0);
  ASSERT_EQ(sotto("run config.toml --set rounds=3 --set federation.lr=0.5 --out two --quiet").exit_code, 0);
  const std::string clients = sotto("report one two --clients").out;
  EXPECT_THAT(clients, HasSubstr("client 4"));
  EXPECT_THAT(clients, HasSubstr("better off"));
  EXPECT_THAT(clients, HasSubstr("of 5\n"));
  const Result csv = sotto("report one two --format csv");
  EXPECT_THAT(csv.out, ::testing::StartsWith("run,method,dataset,seed,rounds,accuracy %,"));
  EXPECT_THAT(csv.out, HasSubstr("\ntwo,fedavg,custom,1,3,"));
}

TEST_F(OwnData, ManyDomainsAreATableInTheirOrder) {
  std::string rows = "a,domain,label\n";
  for (int i = 0; i < 240; ++i) rows += fmt::format("{}.5,ward {},{}\n", i % 7, i % 12 + 1, i % 2);
  write_file_atomically(folder_ / "table.csv", rows);
  fs::remove(folder_ / "table.schema.json");
  write("domains.toml", "rounds = 1", "partition = \"domain\"");
  std::string text = read_file(folder_ / "domains.toml");
  text.replace(text.find("clients = 5"), 11, "clients = 12");
  write_file_atomically(folder_ / "domains.toml", text);
  const Result result = sotto("run domains.toml --out d --quiet");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_LT(result.out.find("ward 9 "), result.out.find("ward 10 "));
  for (const std::string& line : split(result.out, '\n')) {
    if (line.find("ward ") == std::string::npos) continue;
    EXPECT_LE(display_width(line), 80U) << line;
  }
}

TEST_F(OwnData, TablesFitATerminal) {
  write("private.toml", "rounds = 2", "",
        "[method]\nname = \"ldp-fedavg\"\n[privacy]\nepsilon = 4\ndelta = 1e-5\n"
        "adjacency = \"zero-out\"\n");
  ASSERT_EQ(sotto("run private.toml --out p --quiet").exit_code, 0);
  for (const char* command :
       {"report p", "report p --clients", "ledger show p", "plan private.toml", "data list", "list methods"}) {
    const Result result = sotto(command);
    EXPECT_EQ(result.exit_code, 0) << command;
    for (const std::string& line : split(result.out, '\n')) {
      const bool is_path = line.find('/') != std::string::npos;  // of this machine, and no word to break it at
      if (is_path) continue;
      EXPECT_LE(display_width(line), 80U) << command << ": " << line;
    }
  }
}

}  // namespace
}  // namespace sotto

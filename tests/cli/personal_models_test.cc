// Tuning a private global model at home: a federation in which it is worth it.
#include "program.h"

namespace sotto {
namespace {

class PersonalModels : public Program {
 protected:
  static constexpr int kClasses = 4, kColumns = 16, kRecords = 3200;

  // Classes overlap, and a client has eight records of two of them to learn from: too few to learn alone what a class
  // looks like, and enough to learn which classes it has.
  void write_overlapping_classes() {
    RandomStream stream(1, "classes");
    std::vector<std::vector<double>> centres(kClasses, std::vector<double>(kColumns));
    for (auto& centre : centres) {
      for (double& x : centre) x = 0.5 * stream.normal();
    }
    std::string rows;
    json columns = json::array();
    for (int c = 0; c < kColumns; ++c) {
      rows += fmt::format("x{},", c);
      columns.push_back({{"name", fmt::format("x{}", c)}, {"kind", "number"}, {"range", {-4, 4}}});
    }
    rows += "label\n";
    for (int i = 0; i < kRecords; ++i) {
      const int label = i % kClasses;
      for (const double x : centres[static_cast<size_t>(label)]) rows += fmt::format("{:.3f},", x + stream.normal());
      rows += fmt::format("{}\n", label);
    }
    columns.push_back({{"name", "label"}, {"kind", "label"}, {"values", {"0", "1", "2", "3"}}});
    write_file_atomically(folder_ / "overlapping.csv", rows);
    write_file_atomically(folder_ / "overlapping.schema.json", json{{"columns", columns}}.dump());
    write_file_atomically(folder_ / "personal.toml", std::string_view(R"(rounds = 10
[data]
name = "custom"
path = "overlapping.csv"
clients = 200
partition = "pathological"
classes_per_client = 2
test_fraction = 0.5
[model]
name = "linear"
[federation]
batch = 8
eval_every = 20
[method]
name = "dp-head"
[privacy]
epsilon = 16
delta = 1e-3
adjacency = "zero-out"
)"));
  }

  json run(const std::string& more) const {
    static int count = 0;
    const Elsewhere here(folder_);
    return json::parse(
        cli::output_of(words_of(fmt::format("run personal.toml --json --quiet --out run{} {}", ++count, more))));
  }
};

TEST_F(PersonalModels, TuningAtHomeBeatsTheGlobalModelAndClientsAlone) {
  write_overlapping_classes();
  double global = 0, tuned = 0, alone = 0;
  constexpr int kSeeds = 2;
  for (int seed = 1; seed <= kSeeds; ++seed) {
    const std::string with_seed = fmt::format("--set seed={} ", seed);
    const json plain = run(with_seed);
    const json at_home = run(with_seed + "--set federation.fine_tune=20 --set federation.fine_tune_lr=20");
    EXPECT_EQ(plain["privacy"]["proven_epsilon"], at_home["privacy"]["proven_epsilon"]) << "and costs nothing";
    EXPECT_EQ(plain["accuracy_global"], at_home["accuracy_global"]);
    global += plain["accuracy"]["mean"].get<double>() / kSeeds;
    tuned += at_home["accuracy"]["mean"].get<double>() / kSeeds;
    alone += run(with_seed + "--set method.name=local-only --set federation.lr=3 --set rounds=20")["accuracy"]["mean"]
                 .get<double>() /
             kSeeds;
  }
  EXPECT_GT(tuned, global + 0.01);
  EXPECT_GT(tuned, alone + 0.005);
}

}  // namespace
}  // namespace sotto

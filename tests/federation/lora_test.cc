// Low-rank paths in a federation: what is sent, what is kept, and who has no use for them.
#include "models/lora.h"

#include "base/files.h"
#include "small_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace sotto::federation {
namespace {

using ::testing::HasSubstr;

Setup low_rank(const std::string& method, const std::string& more = "", int rounds = 2) {
  return changed(
      small_setup(fmt::format("rounds = {}\n[data]\nclients = 3\n[federation]\nbatch = 8\n{}{}{}[method]\n"
                              "name = \"{}\"\n{}",
                              rounds, step_of(method), more, privacy_terms(method), method, needed_options(method))),
      [](config::RunSpec& spec) {
        spec.model.lora = {2, {"fc1"}};
      });
}

// Methods of whose layers before the classifier nothing is trained.
const std::set<std::string> kRefusing = {"dp-head", "dp-prototypes"};

TEST(LowRankPaths, AreAllThatMethodsSendOfTheirLayers) {
  for (const std::string& name : methods::method_names()) {
    SCOPED_TRACE(name);
    if (kRefusing.contains(name) || !methods::find_method(name).uses_model) {
      try {
        low_rank(name).plan_for(0);
        ADD_FAILURE() << "accepted";
      } catch (const UserError& error) {
        EXPECT_THAT(error.what(), HasSubstr("model.lora"));
        EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
      }
      continue;
    }
    const auto setup = changed(low_rank(name), [](config::RunSpec& spec) { spec.record.uploads = true; });
    privacy::Ledger ledger;
    const Last result = run(setup, ledger);
    ASSERT_EQ(result.rounds.size(), 2U);
    EXPECT_FALSE(result.rounds.back().train_loss != result.rounds.back().train_loss) << "diverged";
    std::vector<NamedTensors> all = result.uploads;
    all.push_back(result.broadcast);
    for (const NamedTensors& sent : all) {
      for (const NamedTensor& tensor : sent) {
        EXPECT_FALSE(tensor.name.ends_with("fc1.weight") || tensor.name.ends_with("fc1.bias")) << tensor.name;
      }
    }
  }
}

TEST(LowRankPaths, LearnAndReleaseTheirTensorsAlone) {
  const auto setup = changed(low_rank("ldp-fedavg", "", 20), [](config::RunSpec& spec) {
    spec.privacy->epsilon = 50;
    spec.record.uploads = true;
  });
  privacy::Ledger ledger;
  const Last result = run(setup, ledger);
  EXPECT_GT(result.rounds.back().evaluation->global_accuracy, 0.8);
  for (const char* name : {"fc1.lora_a.weight", "fc1.lora_b.weight"}) {
    const at::Tensor sent = find_tensor(result.broadcast, name);
    ASSERT_TRUE(sent.defined()) << name;
    EXPECT_GT(sent.abs().max().item<double>(), 0) << name;
  }
  EXPECT_EQ(setup.plan_for(0).at(0).reach().coordinates, 2 * 6 + 8 * 2 + 3 * 8 + 3);
}

struct Checkpoints : RunSink {
  void upload(int64_t, int64_t, const privacy::Upload&) override {}
  void round(const RoundRecord&) override {}
  void checkpoint(const Checkpoint& point) override {
    points.push_back({point.round, {point.round, clone(point.broadcast.values)}, clone(point.server_state)});
  }
  std::vector<Checkpoint> points;
};

TEST(LowRankPaths, GoOnAfterAnInterruption) {
  const auto setup = changed(low_rank("fedavg", "", 4), [](config::RunSpec& spec) { spec.model.personal = {"head."}; });
  const fs::path folder = fs::temp_directory_path() / fmt::format("sotto-lora-resume-{}", ::getpid());
  fs::remove_all(folder);
  privacy::Ledger ledger;
  Checkpoints whole, rest;
  const auto kept = make_disk_store(folder);
  run_rounds(changed(setup, [](config::RunSpec& spec) { spec.rounds = 2; }), *kept, ledger, rest, 1);
  const Checkpoint half = std::move(rest.points.back());
  privacy::Ledger other;
  run_rounds(setup, *make_memory_store({}), other, whole, 2);
  const auto again = make_disk_store(folder);
  run_rounds(setup, *again, ledger, rest, 2, half);
  const NamedTensors &a = whole.points.back().broadcast.values, &b = rest.points.back().broadcast.values;
  ASSERT_EQ(a.size(), 2U);
  ASSERT_EQ(b.size(), 2U);
  for (size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(at::equal(a[i].value, b[i].value)) << a[i].name;
  fs::remove_all(folder);
}

TEST(LowRankPaths, BesideTheClassifierAloneAreNoUseToPrototypes) {
  const auto setup =
      small_setup("rounds = 1\n[data]\nclients = 3\n[method]\nname = \"fedproto\"\nmechanism = \"none\"\n");
  try {
    const auto changed_setup = changed(setup, [](config::RunSpec& spec) { spec.model.lora = {2, {"head"}}; });
    changed_setup.method().make_client(changed_setup.client_context());
    FAIL() << "accepted";
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("model.lora.targets: only the classifier of model 'mlp' is named"));
  }
}

}  // namespace
}  // namespace sotto::federation

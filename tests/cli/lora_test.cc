// Low-rank paths beside the layers of an archive, from a private run to a file that the archive's own class loads.
#include "../support/script_archives.h"
#include "io/safetensors.h"
#include "program.h"

#include <nlohmann/json.hpp>

namespace sotto {
namespace {

class LowRankModel : public Program {
 protected:
  LowRankModel() {
    using namespace scripts;
    at::manual_seed(3);
    net_ = module_of("Net", {{"hidden", linear(16 * 3, 12)}, {"fc", linear(12, 10)}}, {},
                     "  x = torch.avg_pool2d(x, [8, 8])\n"
                     "  return self.fc(torch.relu(self.hidden(x.flatten(1))))\n");
    saved(net_, folder_ / "net.pt");
    write_file_atomically(
        folder_ / "private.toml",
        std::string_view(
            "rounds = 2\n[data]\nname = \"synthetic-digits\"\nlimit = 200\nclients = 2\n[model]\nname = "
            "\"torchscript\"\nweights = \"net.pt\"\nlora = { rank = 3, targets = [\"hidden\"] }\n[method]\n"
            "name = \"ldp-fedavg\"\n[privacy]\nepsilon = 4\ndelta = 1e-5\nadjacency = \"zero-out\"\n"));
  }

  torch::jit::Module net_{"Net"};
};

TEST_F(LowRankModel, IsTrainedPrivatelyAndExportedUnderTheArchivesNames) {
  const Result plan = sotto("plan private.toml --json");
  ASSERT_EQ(plan.exit_code, 0) << plan.err;
  EXPECT_EQ(json::parse(plan.out)["shared_parameters"], 3 * 48 + 12 * 3 + 10 * 12 + 10);
  const Result run = sotto("run private.toml --out run --quiet");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(sotto("ledger verify run").exit_code, 0);
  const Result written = sotto("export run --out trained.safetensors");
  ASSERT_EQ(written.exit_code, 0) << written.err;

  const NamedTensors trained = io::read_safetensors(folder_ / "trained.safetensors").tensors;
  size_t known = 0;
  for (const auto& parameter : net_.named_parameters()) {
    const at::Tensor value = find_tensor(trained, parameter.name);
    ASSERT_TRUE(value.defined()) << parameter.name;
    ASSERT_EQ(value.sizes(), parameter.value.sizes());
    EXPECT_EQ(at::equal(value, parameter.value), parameter.name == "hidden.bias") << parameter.name;
    ++known;
  }
  EXPECT_EQ(trained.size(), known);
  EXPECT_EQ(sotto("predict run --test 2").exit_code, 0);
}

TEST_F(LowRankModel, SaysWhatIsWrongInOneLine) {
  expect_user_error("run private.toml --set model.lora.targets=[\\\"fc1\\\"]",
                    "the model's linear layers are called hidden, fc");
  expect_user_error("run private.toml --set model.lora.rank=13",
                    "model.lora.rank: 13 is more than the layer 'hidden' [12, 48] has");
  expect_user_error("run private.toml --set model.lora.rank=0", "model.lora.rank is missing");
  expect_user_error("run private.toml --set model.lora.alpha=2", "model.lora.alpha is not a known key");
  expect_user_error("run private.toml --set method.name=dp-head", "model.lora: 'dp-head' trains a linear head");
}

}  // namespace
}  // namespace sotto

// Models of one's own, from an archive to a private run and back.
#include "../support/script_archives.h"
#include "program.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace sotto {
namespace {

class OwnModel : public Program {};

TEST_F(OwnModel, IsCheckedTrainedPrivatelyAndExported) {
  at::manual_seed(3);
  using namespace scripts;
  saved(module_of("Net", {{"conv", conv(3, 4, 8, 8, 0)}, {"norm", group_norm(2, 4)}, {"fc", linear(4 * 4 * 4, 10)}}, {},
                  "  return self.fc(torch.relu_(self.norm(self.conv(x))).flatten(1))\n"),
        folder_ / "net.pt");
  const Result check = sotto("model check net.pt --json");
  ASSERT_EQ(check.exit_code, 0) << check.err;
  const auto found = nlohmann::json::parse(check.out);
  ASSERT_EQ(found["layers"].size(), 3u);
  EXPECT_EQ(found["layers"][2]["name"], "fc");
  EXPECT_EQ(found["classes"], 10);
  EXPECT_THAT(sotto("model check net.pt").out, HasSubstr("per-example clipping is exact"));

  write_file_atomically(
      folder_ / "private.toml",
      std::string_view(
          "rounds = 2\n[data]\nname = \"synthetic-digits\"\nlimit = 200\nclients = 2\n[model]\nname = \"torchscript\"\n"
          "weights = \"net.pt\"\n[method]\nname = \"ldp-fedavg\"\n[privacy]\nepsilon = 4\ndelta = 1e-5\nadjacency = "
          "\"zero-out\"\n"));
  const Result run = sotto("run private.toml --out run --quiet");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(sotto("ledger verify run").exit_code, 0);
  EXPECT_EQ(sotto("export run --out trained.safetensors").exit_code, 0);
  EXPECT_EQ(sotto("predict run --test 2").exit_code, 0);
}

// What it computes is known to nobody: private methods of records and of clients refuse it alike.
TEST_F(OwnModel, ThatCannotBeRebuiltIsNeverPrivate) {
  at::manual_seed(3);
  using namespace scripts;
  saved(module_of("Net", {{"conv", conv(3, 4, 8, 8, 0)}, {"fc", linear(4 * 4 * 4, 10)}}, {},
                  "  y = self.conv(x)\n  if bool(y.sum() > 0):\n    y = y * 2\n  return self.fc(y.flatten(1))\n"),
        folder_ / "net.pt");
  const std::string common =
      "rounds = 1\n[data]\nname = \"synthetic-digits\"\nlimit = 100\nclients = 2\n[model]\nname = \"torchscript\"\n"
      "weights = \"net.pt\"\n";
  const auto config = [&](const std::string& rest) {
    write_file_atomically(folder_ / "config.toml", std::string_view(common + rest));
  };
  config("[method]\nname = \"fedavg\"\n");
  const Result trained = sotto("run config.toml --out run --quiet");
  EXPECT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_EQ(sotto("export run --out trained.pt").exit_code, 0);
  for (const char* private_method :
       {"[method]\nname = \"ldp-fedavg\"\n[privacy]\nepsilon = 4\ndelta = 1e-5\nadjacency = \"zero-out\"\n",
        "[method]\nname = \"dp-fedavg\"\n[privacy]\nepsilon = 4\ndelta = 1e-5\nunit = \"client\"\nadjacency = "
        "\"add-remove\"\nobserver = \"clients\"\n"}) {
    config(private_method);
    for (const char* command : {"plan config.toml", "run config.toml --out private --quiet"}) {
      const Result refused = sotto(command);
      EXPECT_EQ(refused.exit_code, 2) << command;
      EXPECT_THAT(refused.err, HasSubstr("control flow that depends on the records")) << command;
    }
  }
}

TEST_F(OwnModel, ThatCannotBeTakenIsNamedInOneLine) {
  using namespace scripts;
  saved(module_of("Net", {{"head", linear(7, 3)}}, {}, "  return self.head(torch.fft_fft(x).abs())\n"),
        folder_ / "net.pt");
  const Result result = sotto("model check net.pt");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("aten::fft_fft"));
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  write_file_atomically(folder_ / "net.pt", std::string_view("not an archive"));
  EXPECT_THAT(sotto("model check net.pt").err, HasSubstr("is not a TorchScript archive"));
}

}  // namespace
}  // namespace sotto

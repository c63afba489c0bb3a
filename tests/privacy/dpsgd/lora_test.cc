// Models with low-rank paths against the loop over single examples.
#include "models/lora.h"

#include "../../support/expect_user_error.h"
#include "../../support/script_archives.h"
#include "reference.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

namespace sotto::privacy {
namespace {

using namespace scripts;

models::ModelOptions with_lora(const std::string& name, int64_t rank, std::vector<std::string> targets) {
  models::ModelOptions options;
  options.name = name;
  options.lora = {rank, std::move(targets)};
  return options;
}

// B starts at zero, and so would all gradients of A.
Case drawn_case(const models::ModelOptions& options, const models::Task& task, int64_t batch) {
  Case c = make_case(options, task, batch);
  const at::NoGradGuard no_grad;
  for (auto& [name, value] : c.model->state()) {
    if (models::is_lora(name)) value.normal_(0, 0.3);
  }
  return c;
}

void expect_exact(Case c, ClipOptions clip = {}) {
  const at::Tensor gradients = gradients_one_by_one(c);
  const at::Tensor norms = norms_of(gradients);
  clip.bound = middle(norms);
  clip.usual_batch = c.x.size(0);
  PerExampleClipper clipper(*c.model, c.flat, clip);
  const ClippedSum result = clipper.sum(c.x, c.y);
  std::string worst;
  EXPECT_LT(difference(c, clipped_sum(gradients, clip.bound), &worst), 2e-5) << worst;
  EXPECT_TRUE(at::allclose(result.norms[0], norms, 1e-5, 1e-12)) << result.norms[0] << norms;
  EXPECT_EQ(result.clipped, norms.gt(clip.bound).sum().item<int64_t>());
  for (const auto& [name, value] : c.model->shared_parameters()) {
    if (!models::is_lora(name)) continue;
    const int64_t offset = value.data_ptr<float>() - c.flat.values().data_ptr<float>();
    EXPECT_GT(length_of(c.flat.gradient().narrow(0, offset, value.numel()).flatten()), 0) << name;
  }
}

class Lora : public ::testing::Test {
 protected:
  Lora() : file_(::testing::TempDir() + "sotto-lora-" + std::to_string(::getpid()) + ".pt") { at::manual_seed(3); }
  ~Lora() override { std::filesystem::remove(file_); }

  models::ModelOptions archive(const Module& module, int64_t rank, std::vector<std::string> targets) {
    models::ModelOptions options = with_lora("torchscript", rank, std::move(targets));
    options.weights = saved(module, file_).string();
    return options;
  }

  std::filesystem::path file_;
};

TEST_F(Lora, OfAVisionTransformerIsExact) {
  models::ModelOptions options = with_lora("vit-tiny", 2, {"attn", "mlp"});
  options.width = 24;
  options.depth = 2;
  options.heads = 3;
  expect_exact(drawn_case(options, {{3, 16, 16}, 5}, 7));
  options.lora.rank = 8;
  options.lora.targets = {"qkv"};
  options.adapter = 4;
  expect_exact(drawn_case(options, {{3, 8, 8}, 5}, 7));
}

TEST_F(Lora, OfAnMlpIsExactOverSeveralPasses) {
  models::ModelOptions options = with_lora("mlp", 3, {"fc1", "fc2"});
  options.hidden = {12, 9};
  expect_exact(drawn_case(options, {{7}, 4}, 11), {.slots = 4});
}

TEST_F(Lora, OfALinearHeadIsExact) {
  expect_exact(drawn_case(with_lora("linear", 2, {"head"}), {{7}, 3}, 9));
}

TEST_F(Lora, BehindFrozenBatchNormIsExact) {
  models::ModelOptions options = with_lora("resnet18", 3, {"fc"});
  options.norm = models::Normalisation::kBatch;
  expect_exact(drawn_case(options, {{3, 8, 8}, 5}, 4));
}

TEST_F(Lora, OfATextEncodersAttentionIsExact) {
  expect_exact(drawn_case(with_lora("minilm", 2, {"layer.0.attention", "5.attention.self.value"}), {{9}, 4, true}, 2));
}

TEST_F(Lora, OfArchivesIsExact) {
  expect_exact(drawn_case(archive(vit(), 2, {"attn", "fc2"}), {{3, 8, 8}, 5}, 6));
  expect_exact(drawn_case(archive(text(), 2, {"hidden"}), {{6}, 4, true}, 8));
}

TEST_F(Lora, OfALayerThatIsUsedTwiceIsExact) {
  expect_exact(drawn_case(archive(shared_mlp(), 4, {"again"}), {{7}, 3}, 9));
}

TEST_F(Lora, OfFrozenParametersTrainsThePathsAlone) {
  Module module = shared_mlp();
  for (const auto& parameter : module.parameters()) at::Tensor(parameter).set_requires_grad(false);
  Case c = drawn_case(archive(module, 2, {"again"}), {{7}, 3}, 5);
  ASSERT_EQ(c.model->shared_parameters().size(), 2U);
  EXPECT_EQ(c.model->shared_parameters()[0].name, "again.lora_a.weight");
  expect_exact(std::move(c));
}

TEST_F(Lora, OfAnArchiveMergesIntoTheNamesOfTheArchive) {
  const Module module = vit();
  Case c = drawn_case(archive(module, 2, {"attn", "fc2", "head"}), {{3, 8, 8}, 5}, 6);
  const NamedTensors merged = models::merge_lora(c.model->state());
  Module own = module.clone();
  const at::NoGradGuard no_grad;
  size_t found = 0;
  for (const auto& parameter : own.named_parameters()) {
    const at::Tensor value = find_tensor(merged, parameter.name);
    ASSERT_TRUE(value.defined()) << parameter.name;
    parameter.value.copy_(value);
    ++found;
  }
  EXPECT_EQ(found, merged.size());
  EXPECT_TRUE(at::allclose(own.forward({c.x}).toTensor(), c.model->logits(c.x), 1e-4, 1e-5));
}

TEST_F(Lora, RefusesAnArchiveThatHasSuchNames) {
  const Module path = linear(7, 2, false);
  const Module outer = module_of("Outer",
                                 {{"inner", linear(7, 7)},
                                  {"lora", module_of("Pair", {{"lora_a", path}}, {}, "  return self.lora_a(x)\n")},
                                  {"head", linear(9, 3)}},
                                 {}, "  return self.head(torch.cat([self.inner(x), self.lora(x)], 1))\n");
  EXPECT_USER_ERROR(make_case(archive(outer, 2, {"inner"}), {{7}, 3}, 4), "the model has 'lora.lora_a.weight' already");
}

}  // namespace
}  // namespace sotto::privacy

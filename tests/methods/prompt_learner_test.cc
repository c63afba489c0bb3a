#include "methods/prompts/prompt_learner.h"

#include "../support/expect_user_error.h"
#include "../support/temp_folder.h"
#include "io/safetensors.h"
#include "methods/prompts/prompt_file.h"
#include "methods/prompts/prompt_learning.h"
#include "privacy/dpsgd/noisy_steps.h"
#include "privacy/ledger.h"
#include "privacy/outer_products.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace sotto::methods {
namespace {

constexpr int64_t kWidth = 6;
constexpr int64_t kRecords = 7;

PromptOptions options_for(LocalPrompt local) {
  PromptOptions options;
  options.encoder = "tiny";
  options.length = 5;
  options.shape.local = local;
  options.shape.rank = 2;
  if (local == LocalPrompt::kFactors) options.shape.contrast = 1;
  return options;
}

struct Bench {
  explicit Bench(LocalPrompt local, int64_t patches = 1)
      : learner(make_prompt_learner(options_for(local), {"mug", "back_pack", "日本"}, kWidth)), stream(1, "bench") {
    RandomStream data(2, "data");
    images = at::empty({kRecords, patches, kWidth}).normal_(0.0, 1.0, data.torch_generator());
    images = images / images.norm(2, -1, true);
    labels = at::arange(kRecords, at::kLong).remainder(3);
    learner.set(learner.classes().photo_prompt(), learner.first_local(stream));
  }

  PromptLearner learner;
  RandomStream stream;
  at::Tensor images, labels;
};

// Half of the records are above it.
double middle(std::vector<double> norms) {
  std::sort(norms.begin(), norms.end());
  return (norms[kRecords / 2] + norms[kRecords / 2 + 1]) / 2;
}

NamedTensors factors_of(const PromptLearner::Evidence& evidence) {
  NamedTensors factors;
  factors.push_back({"errors", evidence.errors});
  factors.push_back({"images", evidence.images});
  return factors;
}

// What reaches the update of one noisy step whose noise is next to nothing.
NamedTensors noiseless_step(const std::string& name, int64_t tensors, int64_t coordinates, double clip,
                            const std::function<privacy::Bounded()>& bounded) {
  const auto mechanism = privacy::GroupwiseGaussian::calibrated(1e-5, {{name, tensors, coordinates, clip}});
  privacy::DescentPlan plan;
  plan.records = kRecords;
  plan.batch = kRecords;
  plan.neighbours.adjacency = privacy::Adjacency::kAddRemove;
  const privacy::NoisySteps steps(plan, mechanism);
  privacy::Ledger ledger;
  const privacy::ReleaseContext context{.ledger = ledger};
  NamedTensors seen;
  steps.run(
      steps.channel(name, privacy::Observer::kServer), at::arange(kRecords, at::kLong), context,
      [&](const at::Tensor&) { return bounded(); }, [&](const NamedTensors& noisy) { seen = clone(noisy); },
      [] { return NamedTensors(); });
  return seen;
}

TEST(PromptLearner, TheSumIsExactWhateverTheFactors) {
  Bench bench(LocalPrompt::kFactored);
  const at::Tensor before = bench.learner.prompts().clone();
  bench.learner.begin_step(bench.stream);
  EXPECT_TRUE(bench.learner.prompts().equal(before));
}

// As printed: p_G + u·v is what classifies, and p_L stays as it is.
TEST(PromptLearner, WithoutTheResidualThePromptIsThatOfTheFactors) {
  PromptOptions options = options_for(LocalPrompt::kFactored);
  options.shape.residual = false;
  PromptLearner learner = make_prompt_learner(options, {"a", "b"}, kWidth);
  RandomStream stream(1, "rank"), twin(2, "start"), start(2, "start");
  learner.set(learner.classes().photo_prompt(), learner.first_local(stream));
  const at::Tensor local = learner.local()[0].value, outside = learner.prompts();
  EXPECT_TRUE(outside.equal(learner.prompts())) << "the same whenever it is asked for";
  learner.begin_step(start);
  const Factors factors = factorise(local, at::empty({local.size(1), 2}).normal_(0.0, 1.0, twin.torch_generator()));
  EXPECT_TRUE(at::allclose(learner.prompts()[0], learner.global() + at::matmul(factors.u, factors.v), 1e-5, 1e-6));
  EXPECT_TRUE(learner.local()[0].value.equal(local));
  EXPECT_FALSE(at::allclose(learner.prompts()[0], learner.global() + local, 1e-3, 1e-3));
}

TEST(PromptLearner, ALocalPromptThatIsCutHasRankK) {
  PromptOptions options = options_for(LocalPrompt::kFactored);
  options.shape.cut = true;
  PromptLearner learner = make_prompt_learner(options, {"a", "b"}, kWidth);
  RandomStream stream(1, "rank");
  learner.set(learner.classes().photo_prompt(), learner.first_local(stream));
  learner.begin_step(stream);
  EXPECT_EQ(at::linalg_matrix_rank(learner.local()[0].value, 1e-4).item<int64_t>(), 2);
}

// Per-record gradients of (u, v, p_G) by an explicit loop: a graph of its own for every record.
TEST(PromptLearner, JointClippingIsThatOfALoop) {
  Bench bench(LocalPrompt::kFactored);
  const at::Tensor global = bench.learner.global().clone(), local = bench.learner.local()[0].value;
  RandomStream same(7, "start"), twin(7, "start");
  bench.learner.begin_step(same);
  const auto evidence = bench.learner.evidence(bench.images, bench.labels);
  const auto start = at::empty({local.size(1), 2}).normal_(0.0, 1.0, twin.torch_generator());
  const Factors factors = factorise(local, start);
  const at::Tensor residual = local - at::matmul(factors.u, factors.v);

  std::vector<std::vector<at::Tensor>> each;
  std::vector<double> norms;
  for (int64_t i = 0; i < kRecords; ++i) {
    std::vector<at::Tensor> parameters = {factors.u.clone(), factors.v.clone(), global.clone()};
    for (at::Tensor& parameter : parameters) parameter.requires_grad_();
    const at::Tensor prompt = parameters[2] + at::matmul(parameters[0], parameters[1]) + residual;
    const at::Tensor text = bench.learner.classes().text_features(prompt.unsqueeze(0))[0];
    const at::Tensor logits = at::matmul(bench.images[i], text.t()) / bench.learner.classes().model().temperature();
    each.push_back(torch::autograd::grad({at::cross_entropy_loss(logits, bench.labels.narrow(0, i, 1))},
                                         {parameters[0], parameters[1], parameters[2]}));
    double square = 0;
    for (const at::Tensor& gradient : each.back()) square += gradient.square().sum().item<double>();
    norms.push_back(std::sqrt(square));
  }
  const double clip = middle(norms);
  std::vector<at::Tensor> expected = {at::zeros_like(factors.u), at::zeros_like(factors.v), at::zeros_like(global)};
  for (size_t i = 0; i < each.size(); ++i)
    for (size_t k = 0; k < 3; ++k) expected[k] += each[i][k] * std::min(1.0, clip / norms[i]);
  const NamedTensors sums = noiseless_step("prompts", 3, bench.learner.prompt_coordinates(true, true), clip, [&] {
    return privacy::clip_each(privacy::Contribution(bench.learner.pull_back_each(evidence)), {{"prompts", 3, clip}},
                              1.0, privacy::Adjacency::kAddRemove);
  });
  for (size_t k = 0; k < 3; ++k) {
    EXPECT_TRUE(at::allclose(sums[k].value, expected[k], 1e-3, 1e-3 * clip)) << sums[k].name;
  }
}

TEST(PromptLearner, ClippingAtTextFeaturesIsThatOfALoop) {
  Bench bench(LocalPrompt::kFactored);
  bench.learner.begin_step(bench.stream);
  const auto evidence = bench.learner.evidence(bench.images, bench.labels);
  std::vector<at::Tensor> each;
  std::vector<double> norms;
  for (int64_t i = 0; i < kRecords; ++i) {
    at::Tensor text = bench.learner.classes().text_features(bench.learner.prompts())[0].detach().requires_grad_();
    const at::Tensor logits = at::matmul(bench.images[i], text.t()) / bench.learner.classes().model().temperature();
    each.push_back(torch::autograd::grad({at::cross_entropy_loss(logits, bench.labels.narrow(0, i, 1))}, {text})[0]);
    norms.push_back(each.back().norm().item<double>());
  }
  const double clip = middle(norms);
  at::Tensor expected = at::zeros({3, kWidth});
  for (size_t i = 0; i < each.size(); ++i) expected += each[i] * std::min(1.0, clip / norms[i]);
  const NamedTensors sum = noiseless_step("features", 1, bench.learner.feature_coordinates(), clip, [&] {
    return privacy::clip_outer_products(privacy::Contribution(factors_of(evidence)), {"features", 1, clip},
                                        privacy::Adjacency::kAddRemove);
  });
  EXPECT_TRUE(at::allclose(sum[0].value, expected, 1e-3, 1e-3 * clip));
}

TEST(ClipOuterProducts, RecordsThatAreNotFiniteCountAsZero) {
  at::Tensor left = at::ones({3, 2}), right = at::ones({3, 4});
  left[1][0] = std::numeric_limits<float>::quiet_NaN();
  right[2][1] = std::numeric_limits<float>::infinity();
  const NamedTensors sum = noiseless_step("features", 1, 8, 3.0, [&] {
    NamedTensors factors;
    factors.push_back({"left", left});
    factors.push_back({"right", right});
    return privacy::clip_outer_products(privacy::Contribution(std::move(factors)), {"features", 1, 3.0},
                                        privacy::Adjacency::kAddRemove);
  });
  EXPECT_TRUE(at::allclose(sum[0].value, at::ones({2, 4}), 1e-3, 1e-2));
}

// Whatever a member trains: the one pass back from the summed gradient is the sum of the records' own passes.
TEST(PromptLearner, OnePassBackIsTheSumOfManyForEveryMember) {
  for (const LocalPrompt local : {LocalPrompt::kNone, LocalPrompt::kWhole, LocalPrompt::kFactored,
                                  LocalPrompt::kFactors, LocalPrompt::kAligned}) {
    Bench bench(local, 4);
    bench.learner.begin_step(bench.stream);
    const auto evidence = bench.learner.evidence(bench.images, bench.labels);
    const NamedTensors once = bench.learner.pull_back(PromptLearner::sum_of(evidence));
    const NamedTensors each = bench.learner.pull_back_each(evidence);
    ASSERT_EQ(once.size(), each.size());
    const NamedTensors shapes = bench.learner.parameter_shapes();
    ASSERT_EQ(once.size(), shapes.size());
    for (size_t i = 0; i < once.size(); ++i) {
      EXPECT_EQ(once[i].name, shapes[i].name);
      EXPECT_EQ(once[i].value.sizes(), shapes[i].value.sizes());
      EXPECT_TRUE(at::allclose(each[i].value.sum(0), once[i].value, 1e-3, 1e-3)) << once[i].name;
      EXPECT_GT(once[i].value.abs().max().item<double>(), 0);
    }
  }
}

TEST(PromptLearner, StepsDescend) {
  for (const LocalPrompt local : {LocalPrompt::kNone, LocalPrompt::kWhole, LocalPrompt::kFactored,
                                  LocalPrompt::kFactors, LocalPrompt::kAligned}) {
    Bench bench(local, 4);
    double first = 0, last = 0;
    for (int step = 0; step < 40; ++step) {
      bench.learner.begin_step(bench.stream);
      const auto evidence = bench.learner.evidence(bench.images, bench.labels);
      last = evidence.loss();
      if (step == 0) first = last;
      bench.learner.descend(bench.learner.pull_back(PromptLearner::sum_of(evidence) / kRecords), 1e-3, 1e-3);
    }
    EXPECT_LT(last, 0.98 * first);
  }
}

TEST(PromptLearner, EmptyBatchesAndRanksThatDoNotFit) {
  Bench bench(LocalPrompt::kFactored);
  bench.learner.begin_step(bench.stream);
  const auto evidence = bench.learner.evidence(bench.images.narrow(0, 0, 0), bench.labels.narrow(0, 0, 0));
  EXPECT_EQ(bench.learner.pull_back_each(evidence)[0].value.size(0), 0);
  EXPECT_EQ(PromptLearner::sum_of(evidence).abs().sum().item<double>(), 0);
  PromptOptions options = options_for(LocalPrompt::kFactored);
  options.shape.rank = 6;
  EXPECT_USER_ERROR(make_prompt_learner(options, {"a", "b"}, kWidth), "ranks from 1 to 5");
  options.shape.rank = 2;
  options.encoder = "tinny";
  EXPECT_USER_ERROR(make_prompt_learner(options, {"a", "b"}, kWidth), "tinny");
}

TEST(PromptFile, ComesBackAsItWas) {
  const test::TempFolder folder;
  PromptFile file{.encoder = "tiny", .feature_width = 32, .classes = {"mug", "日本"}, .transport = {}, .prompts = {}};
  file.transport.mass = 0.5;
  file.prompts = at::ones({2, 4, 32});
  write_prompt_file(folder / "p.safetensors", file);
  const PromptFile read = read_prompt_file(folder / "p.safetensors");
  EXPECT_EQ(read.encoder, "tiny");
  EXPECT_EQ(read.classes, file.classes);
  EXPECT_EQ(read.transport.mass, 0.5);
  EXPECT_TRUE(read.prompts.equal(file.prompts));
  NamedTensors other;
  other.push_back({"fc", at::ones({2})});
  io::write_safetensors(folder / "o.safetensors", {.tensors = other, .metadata = {}});
  EXPECT_USER_ERROR(read_prompt_file(folder / "o.safetensors"), "not a prompt");
  file.prompts = at::ones({1, 4, 31});
  EXPECT_USER_ERROR(PromptClassifier{file}, "31");
}

}  // namespace
}  // namespace sotto::methods

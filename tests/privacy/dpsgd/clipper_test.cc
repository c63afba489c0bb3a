#include "privacy/dpsgd/clipper.h"

#include "../../support/expect_user_error.h"
#include "models/layers.h"
#include "reference.h"

#include <gtest/gtest.h>

#include <limits>
#include <numeric>
#include <utility>

namespace sotto::privacy {
namespace {

constexpr double kTolerance = 1e-5;

models::ModelOptions named(const std::string& name) {
  models::ModelOptions options;
  options.name = name;
  return options;
}

const models::Task kDigits = {{1, 28, 28}, 10};
const models::Task kSmall = {{1, 8, 8}, 4};

models::ModelOptions small_mlp() {
  models::ModelOptions options = named("mlp");
  options.hidden = {9, 6};
  return options;
}

TEST(Clipper, SlotsDoNotChangeTheSum) {
  Case c = make_case(named("cnn"), kDigits, 11);
  const at::Tensor gradients = gradients_one_by_one(c);
  const double bound = middle(norms_of(gradients));
  for (const int64_t size : {1, 2, 3, 4, 5, 7, 10, 11, 64}) {
    PerExampleClipper clipper(*c.model, c.flat, {.bound = bound, .slots = size});
    const ClippedSum result = clipper.sum(c.x, c.y);
    EXPECT_LT(difference(c, clipped_sum(gradients, bound)), kTolerance) << size;
    EXPECT_TRUE(at::allclose(result.norms[0], norms_of(gradients), 1e-5)) << size;
  }
}

TEST(Clipper, ABatchOfOneAndAnEmptyOne) {
  Case c = make_case(named("cnn"), kDigits, 1);
  const at::Tensor gradients = gradients_one_by_one(c);
  PerExampleClipper clipper(*c.model, c.flat, {.bound = 0.1});
  EXPECT_EQ(clipper.sum(c.x, c.y).clipped, 1);
  EXPECT_LT(difference(c, clipped_sum(gradients, 0.1)), kTolerance);
  const ClippedSum none = clipper.sum(c.x.narrow(0, 0, 0), c.y.narrow(0, 0, 0));
  EXPECT_EQ(none.norms.size(1), 0);
  EXPECT_EQ(c.flat.gradient().abs().max().item<float>(), 0.0f);
}

TEST(Clipper, GroupsAreBoundedApart) {
  Case c = make_case(small_mlp(), kSmall, 9);
  const at::Tensor gradients = gradients_one_by_one(c);
  // Groups that split a layer: the weight here, the bias there.
  const std::vector<std::vector<std::string>> prefixes = {{"fc1.weight", "head"}, {"fc1.bias", "fc2"}};
  std::vector<ClipGroup> groups;
  at::Tensor expected = at::zeros({gradients.size(1)}, at::kDouble);
  at::Tensor norms = at::zeros({2, 9}, at::kDouble);
  for (size_t g = 0; g < prefixes.size(); ++g) {
    at::Tensor mask = at::zeros_like(gradients[0]);
    for (const auto& [name, value] : c.model->shared_parameters())
      for (const auto& prefix : prefixes[g])
        if (name.starts_with(prefix))
          mask.narrow(0, value.data_ptr<float>() - c.flat.values().data_ptr<float>(), value.numel()).fill_(1.0);
    norms[static_cast<int64_t>(g)] = norms_of(gradients * mask);
    groups.push_back({prefixes[g], middle(norms[static_cast<int64_t>(g)])});
    expected += clipped_sum(gradients * mask, groups.back().bound);
  }
  PerExampleClipper clipper(*c.model, c.flat, {.groups = groups});
  const ClippedSum result = clipper.sum(c.x, c.y);
  EXPECT_LT(difference(c, expected), kTolerance);
  EXPECT_TRUE(at::allclose(result.norms, norms, 1e-5));
}

// One factor for all groups, each measured by its own bound; against one example at a time.
TEST(Clipper, GroupsCanBeBoundedTogether) {
  models::ModelOptions options;
  options.name = "mlp";
  options.hidden = {7};
  Case c = make_case(options, {{5}, 3}, 40);
  c.x.narrow(0, 0, 3).mul_(1e4);
  const at::Tensor gradients = gradients_one_by_one(c).to(at::kDouble);
  const int64_t first = 5 * 7 + 7, all = gradients.size(1);
  const double bounds[] = {0.3, 0.05};
  at::Tensor relative = gradients.clone();
  relative.narrow(1, 0, first).div_(bounds[0]);
  relative.narrow(1, first, all - first).div_(bounds[1]);
  const at::Tensor norms = relative.norm(2, 1);
  const at::Tensor expected = (gradients * norms.clamp_min(1).reciprocal().unsqueeze(1)).sum(0);
  ASSERT_GT((norms > 1).sum().item<int64_t>(), 5);
  PerExampleClipper clipper(*c.model, c.flat, {.groups = {{{"fc1"}, bounds[0]}, {{"head"}, bounds[1]}}, .joint = true});
  const ClippedSum sum = clipper.sum(c.x, c.y);
  EXPECT_LT((c.flat.gradient().to(at::kDouble) - expected).norm().item<double>(),
            1e-5 * expected.norm().item<double>());
  EXPECT_EQ(sum.clipped, (norms > 1).sum().item<int64_t>());
  // Every example on its own stays within the joint bound.
  for (int64_t i = 0; i < 40; ++i) {
    clipper.sum(c.x.narrow(0, i, 1), c.y.narrow(0, i, 1));
    const at::Tensor own = c.flat.gradient().to(at::kDouble);
    const double square = std::pow(own.narrow(0, 0, first).norm().item<double>() / bounds[0], 2) +
                          std::pow(own.narrow(0, first, all - first).norm().item<double>() / bounds[1], 2);
    EXPECT_LE(square, 1.0) << i;
  }
}

TEST(Clipper, ParametersThatAreLeftOutHaveNoGradientAndDoNotCount) {
  models::ModelOptions options;
  options.name = "mlp";
  options.hidden = {7};
  Case c = make_case(options, {{5}, 3}, 10);
  const at::Tensor gradients = gradients_one_by_one(c);
  const int64_t first = 5 * 7 + 7, rest = gradients.size(1) - first;
  PerExampleClipper clipper(*c.model, c.flat, {.bound = 0.1, .left_out = {"fc1.weight", "fc1.bias"}});
  clipper.sum(c.x, c.y);
  EXPECT_EQ(c.flat.gradient().narrow(0, 0, first).abs().max().item<double>(), 0);
  const at::Tensor expected = clipped_sum(gradients.narrow(1, first, rest), 0.1);
  EXPECT_LT(length_of(c.flat.gradient().narrow(0, first, rest) - expected), 1e-5);
}

TEST(Clipper, GroupsMustCoverEveryParameterOnce) {
  Case c = make_case(small_mlp(), kSmall, 1);
  const auto with = [&](std::vector<ClipGroup> groups) {
    PerExampleClipper(*c.model, c.flat, {.groups = std::move(groups)});
  };
  EXPECT_USER_ERROR(with({{{"fc"}, 1.0}}), "'head.weight' is in 0 groups");
  EXPECT_USER_ERROR(with({{{"fc", "head"}, 1.0}, {{"fc1"}, 1.0}}), "'fc1.weight' is in 2 groups");
  EXPECT_USER_ERROR(with({{{"fc", "head"}, 1.0}, {{"conv"}, 1.0}}), "begins with 'conv'");
  EXPECT_USER_ERROR(with({{{""}, 0.0}}), "at least 1e-09");
}

TEST(Clipper, BoundsMustBePositiveAndFinite) {
  Case c = make_case(small_mlp(), kSmall, 1);
  for (const double bound : {0.0, -1.0, std::nan(""), std::numeric_limits<double>::infinity()})
    EXPECT_USER_ERROR(PerExampleClipper(*c.model, c.flat, {.bound = bound}), "at least 1e-09 and finite");
  PerExampleClipper clipper(*c.model, c.flat, {.bound = 1.0});
  EXPECT_USER_ERROR(clipper.set_bounds({1.0, 2.0}), "2 bounds for 1 groups");
  EXPECT_USER_ERROR(clipper.set_bounds({0.0}), "at least 1e-09");
}

TEST(Clipper, BoundsMayChangeBetweenSums) {
  Case c = make_case(small_mlp(), kSmall, 6);
  const at::Tensor gradients = gradients_one_by_one(c);
  PerExampleClipper clipper(*c.model, c.flat, {.bound = 100.0});
  for (const double bound : {0.01, 0.5, 30.0}) {
    clipper.set_bounds({bound});
    clipper.sum(c.x, c.y);
    EXPECT_LT(difference(c, clipped_sum(gradients, bound)), kTolerance) << bound;
  }
}

TEST(Clipper, PersonalParametersCanBeLeftAlone) {
  models::ModelOptions options = small_mlp();
  options.personal = {"head."};
  Case c = make_case(options, kSmall, 7);
  at::Tensor gradients = gradients_one_by_one(c);
  const int64_t shared = c.flat.shared().numel();
  gradients.narrow(1, shared, gradients.size(1) - shared).zero_();
  const double bound = middle(norms_of(gradients));
  PerExampleClipper clipper(*c.model, c.flat, {.bound = bound, .shared_only = true});
  c.flat.gradient().fill_(7.0);
  clipper.sum(c.x, c.y);
  const at::Tensor rest = c.flat.gradient().narrow(0, shared, c.flat.gradient().numel() - shared);
  EXPECT_TRUE(rest.eq(7.0).all().item<bool>());
  rest.zero_();
  EXPECT_LT(difference(c, clipped_sum(gradients, bound)), kTolerance);
}

TEST(Clipper, OneBadExampleDoesNotReachTheSum) {
  for (const char* name : {"mlp", "cnn", "cnn-cifar", "vit-tiny", "resnet18"}) {
    models::ModelOptions options = named(name);
    if (options.name == "vit-tiny") options.width = 24, options.depth = 1, options.heads = 3, options.patch = 7;
    Case c = make_case(options, kDigits, 5);
    const at::Tensor good = gradients_one_by_one(c);
    c.x.select(0, 2).fill_(std::numeric_limits<float>::quiet_NaN());
    PerExampleClipper clipper(*c.model, c.flat, {.bound = 1.0});
    const ClippedSum result = clipper.sum(c.x, c.y);
    EXPECT_EQ(result.non_finite, 1) << name;
    EXPECT_FALSE(std::isfinite(result.norms[0][2].item<double>())) << name;
    EXPECT_TRUE(std::isfinite(result.loss)) << name;
    const at::Tensor rest = at::cat({good.narrow(0, 0, 2), good.narrow(0, 3, 2)});
    EXPECT_LT(difference(c, clipped_sum(rest, 1.0)), kTolerance) << name;
  }
}

TEST(Clipper, AZeroGradientAddsNothing) {
  Case c = make_case(small_mlp(), kSmall, 3);
  PerExampleClipper clipper(*c.model, c.flat, {.bound = 1.0});
  const ClippedSum result =
      clipper.sum(c.x, c.y, [](const at::Tensor& logits, const at::Tensor&) { return 0.0 * logits.sum(1); });
  EXPECT_EQ(c.flat.gradient().abs().max().item<float>(), 0.0f);
  EXPECT_EQ(result.clipped, 0);
  EXPECT_EQ(result.norms.abs().max().item<double>(), 0.0);
}

TEST(Clipper, NoContributionExceedsItsBound) {
  for (const char* name : {"logistic", "cnn", "resnet18"}) {
    Case c = make_case(named(name), kDigits, 1);
    for (const double bound : {1e-3, 0.37, 1.0}) {
      PerExampleClipper clipper(*c.model, c.flat, {.bound = bound});
      c.x.mul_(1.7);
      const ClippedSum result = clipper.sum(c.x, c.y);
      ASSERT_EQ(result.clipped, 1);
      const double norm = c.flat.gradient().to(at::kDouble).norm().item<double>();
      EXPECT_LE(norm, bound) << name;
      EXPECT_GT(norm, bound * (1 - 1e-5)) << name;
    }
  }
}

TEST(Clipper, GradientsCanBeScaledToTheBound) {
  Case c = make_case(small_mlp(), kSmall, 9);
  c.x[0].zero_();
  const at::Tensor gradients = gradients_one_by_one(c), norms = norms_of(gradients);
  for (const double bound : {1e-3, 50.0}) {
    PerExampleClipper clipper(*c.model, c.flat, {.bound = bound, .normalise = true});
    clipper.sum(c.x, c.y);
    const at::Tensor factors = bound / (norms + 0.01);
    EXPECT_LT(difference(c, (gradients * factors.unsqueeze(1)).sum(0)), 1e-4) << bound;
    for (int64_t i = 0; i < 9; ++i) {
      clipper.sum(c.x.narrow(0, i, 1), c.y.narrow(0, i, 1));
      EXPECT_LE(c.flat.gradient().to(at::kDouble).norm().item<double>(), bound) << i;
    }
  }
}

TEST(Clipper, RepeatedSumsAgreeAndLeaveTheModelAsItWas) {
  Case c = make_case(named("cnn"), kDigits, 6);
  PerExampleClipper clipper(*c.model, c.flat, {.bound = 0.5, .slots = 4});
  clipper.sum(c.x, c.y);
  const at::Tensor first = c.flat.gradient().clone(), values = c.flat.values().clone();
  clipper.sum(c.x.narrow(0, 0, 3), c.y.narrow(0, 0, 3));
  clipper.sum(c.x, c.y);
  EXPECT_TRUE(c.flat.gradient().equal(first));
  EXPECT_TRUE(c.flat.values().equal(values));
  for (const auto& [name, value] : c.model->shared_parameters()) {
    EXPECT_TRUE(value.requires_grad()) << name;
    EXPECT_TRUE(value.grad().is_alias_of(c.flat.gradient())) << name;
  }
  EXPECT_EQ(models::Layer::observer(), nullptr);
}

TEST(Clipper, AnExceptionLeavesNothingBehind) {
  Case c = make_case(named("cnn"), kDigits, 6);
  PerExampleClipper clipper(*c.model, c.flat, {.bound = 0.5, .slots = 2});
  clipper.sum(c.x, c.y);
  const at::Tensor expected = c.flat.gradient().clone();
  int calls = 0;
  const auto failing = [&](const at::Tensor& logits, const at::Tensor& labels) {
    if (++calls == 2) throw std::runtime_error("no");
    return cross_entropy(logits, labels);
  };
  EXPECT_THROW(clipper.sum(c.x, c.y, failing), std::runtime_error);
  EXPECT_EQ(c.flat.gradient().abs().max().item<float>(), 0.0f);
  EXPECT_EQ(models::Layer::observer(), nullptr);
  clipper.sum(c.x, c.y);
  EXPECT_TRUE(c.flat.gradient().equal(expected));
}

TEST(Clipper, DropoutIsRefused) {
  models::ModelOptions options = small_mlp();
  options.dropout = 0.5;
  Case c = make_case(options, kSmall, 8);
  c.model->train();
  PerExampleClipper clipper(*c.model, c.flat, {.bound = 1.0});
  EXPECT_USER_ERROR(clipper.sum(c.x, c.y), "set model.dropout = 0");
}

// What a record adds to a batch of `size`, to the last bit: its clipped gradient, found by taking it alone in its pass.
at::Tensor squares_of(Case& c, PerExampleClipper& clipper, const std::vector<int64_t>& examples) {
  const at::Tensor rows = at::tensor(examples, at::kLong);
  return clipper.sum(c.x.index_select(0, rows), c.y.index_select(0, rows)).norms[0].clone();
}

TEST(Clipper, ARecordsGradientDoesNotDependOnWhoElseIsThere) {
  for (const char* name : {"mlp", "cnn", "vit-tiny", "resnet18"}) {
    models::ModelOptions options = named(name);
    if (options.name == "vit-tiny") options.width = 24, options.depth = 1, options.heads = 3, options.patch = 7;
    Case c = make_case(options, kDigits, 40);
    PerExampleClipper clipper(*c.model, c.flat, {.bound = 1e6, .slots = 16});
    std::vector<int64_t> all(40);
    std::iota(all.begin(), all.end(), 0);
    const at::Tensor together = squares_of(c, clipper, all);
    for (const std::vector<int64_t>& some :
         {std::vector<int64_t>{7}, {39, 7}, {1, 2, 3, 7, 9}, {30, 31, 32, 33, 34, 35, 36, 37, 38, 39,
                                                              20, 21, 22, 23, 24, 25, 26, 27, 28, 7}}) {
      const at::Tensor found = squares_of(c, clipper, some);
      for (size_t i = 0; i < some.size(); ++i) {
        EXPECT_EQ(found[static_cast<int64_t>(i)].item<double>(), together[some[i]].item<double>()) << name;
      }
    }
  }
}

// Passes of a few odd rows begin anywhere in a batch.
TEST(Clipper, ARecordsGradientDoesNotDependOnWhereItsPassBegins) {
  for (const int64_t width : {6, 13, 37, 98}) {
    Case c = make_case(small_mlp(), {{width}, 4}, 60);
    for (const int64_t slots : {2, 3, 4, 5, 6, 7, 9, 11, 13, 15}) {
      PerExampleClipper clipper(*c.model, c.flat, {.bound = 1e6, .slots = slots});
      std::vector<int64_t> all(60);
      std::iota(all.begin(), all.end(), 0);
      const at::Tensor together = squares_of(c, clipper, all);
      for (const int64_t one : all) {
        EXPECT_EQ(squares_of(c, clipper, {one})[0].item<double>(), together[one].item<double>())
            << one << " of width " << width << ", " << clipper.slots() << " slots";
      }
    }
  }
}

TEST(Clipper, ARecordMoreMovesTheSumByItsOwnGradientAlone) {
  Case c = make_case(named("cnn"), kDigits, 33);
  PerExampleClipper clipper(*c.model, c.flat, {.bound = 1e6, .slots = 8});
  const auto sum = [&](int64_t count) {
    return clipper.sum(c.x.narrow(0, 0, count), c.y.narrow(0, 0, count)).gradient.to(at::kDouble, false, true);
  };
  const at::Tensor last = clipper.sum(c.x.narrow(0, 32, 1), c.y.narrow(0, 32, 1)).gradient.to(at::kDouble, false, true);
  EXPECT_LT((sum(33) - sum(32) - last).norm().item<double>(), 1e-12 * last.norm().item<double>());
}

TEST(Clipper, BatchStatisticsAreRefused) {
  models::ModelOptions options = named("resnet18");
  options.norm = models::Normalisation::kBatch;
  Case c = make_case(options, {{3, 8, 8}, 4}, 2);
  c.model->train();
  PerExampleClipper clipper(*c.model, c.flat, {.bound = 1.0});
  EXPECT_USER_ERROR(clipper.sum(c.x, c.y), "model.norm = \"group\"");
}

// Losses that go through the model twice: gradients of an example's two passes add up before they are clipped.
TEST(Clipper, LayersMayBeCalledMoreThanOnce) {
  for (const char* name : {"mlp", "cnn", "vit-tiny", "resnet18"}) {
    models::ModelOptions options = named(name);
    if (options.name == "vit-tiny") options.width = 24, options.depth = 1, options.heads = 3, options.patch = 7;
    Case c = make_case(options, kDigits, 5);
    const auto losses = [&](const at::Tensor& x, const at::Tensor& y) {
      return cross_entropy(c.model->logits(x), y) + (c.model->logits(0.5 * x) * 0.1).pow(2).sum(1);
    };
    PerExampleClipper any(*c.model, c.flat, {.bound = 1.0, .slots = 4});
    any.sum_losses(c.x, c.y, losses);
    // In passes of the clipper's shape, with blanks: some ReLU may lie so near its kink that it flips with the shape.
    std::vector<at::Tensor> rows;
    for (int64_t i = 0; i < 5; ++i) {
      c.flat.zero_gradient();
      const at::Tensor x = at::zeros({any.slots(), 1, 28, 28}), y = at::zeros({any.slots()}, at::kLong);
      x[0].copy_(c.x[i]);
      y[0].copy_(c.y[i]);
      losses(x, y)[0].backward();
      rows.push_back(c.flat.gradient().to(at::kDouble));
    }
    const at::Tensor gradients = at::stack(rows);
    const double bound = middle(norms_of(gradients));
    PerExampleClipper clipper(*c.model, c.flat, {.bound = bound, .slots = 4});
    clipper.sum_losses(c.x, c.y, losses);
    EXPECT_LT(difference(c, clipped_sum(gradients, bound)), kTolerance) << name;
  }
}

TEST(Clipper, LayersOutsideOfTheLossGetNoGradient) {
  Case c = make_case(small_mlp(), kSmall, 4);
  PerExampleClipper clipper(*c.model, c.flat, {.bound = 1.0});
  clipper.sum_losses(c.x, c.y, [&](const at::Tensor& x, const at::Tensor&) { return c.model->features(x).sum(1); });
  for (const auto& [name, value] : c.model->shared_parameters())
    EXPECT_EQ(value.grad().abs().sum().item<float>() == 0.0f, name.starts_with("head")) << name;
}

TEST(Clipper, ParametersUsedOutsideOfLayersAreRefused) {
  Case c = make_case(small_mlp(), kSmall, 4);
  PerExampleClipper clipper(*c.model, c.flat, {.bound = 1.0});
  const at::Tensor weight = find_tensor(c.model->shared_parameters(), "fc1.weight");
  const auto losses = [&](const at::Tensor& x, const at::Tensor& y) {
    return cross_entropy(c.model->logits(x), y) + weight.sum();
  };
  EXPECT_USER_ERROR(clipper.sum_losses(c.x, c.y, losses), "'fc1.weight' is used outside of its layer");
  EXPECT_EQ(c.flat.gradient().abs().max().item<float>(), 0.0f);
}

TEST(Clipper, LayersWithoutABatchAreRefusedEvenIfTheirSizeHappensToFit) {
  Case c = make_case(small_mlp(), kSmall, 4);
  PerExampleClipper clipper(*c.model, c.flat, {.bound = 1.0});
  const at::Tensor four_prompts = at::ones({4, 1, 8, 8});
  const auto losses = [&](const at::Tensor& x, const at::Tensor&) {
    return x.mean({1, 2, 3}) * c.model->logits(four_prompts).sum();
  };
  EXPECT_USER_ERROR(clipper.sum_losses(c.x, c.y, losses), "first dimension is not the batch");
}

TEST(Clipper, LossesMustBeOnePerExample) {
  Case c = make_case(small_mlp(), kSmall, 4);
  PerExampleClipper clipper(*c.model, c.flat, {.bound = 1.0});
  const auto mean = [](const at::Tensor& logits, const at::Tensor&) { return logits.mean(); };
  EXPECT_USER_ERROR(clipper.sum(c.x, c.y, mean), "one value per example");
}

}  // namespace
}  // namespace sotto::privacy

#include "privacy/dpsgd/noisy_descent.h"

#include "config/run_spec.h"
#include "privacy/dpsgd/samplers.h"
#include "privacy/ledger.h"

#include <ATen/ATen.h>

#include <gtest/gtest.h>

#include <cmath>

namespace sotto::privacy {
namespace {

constexpr double kLearningRate = 0.1;
constexpr int64_t kRecords = 30;

class Descent : public ::testing::Test {
 protected:
  Descent() {
    RandomStream init(1, "init");
    models::ModelOptions options;
    options.name = "logistic";
    model_ = models::make_model(options, {{5}, 3}, init);
    flat_ = models::FlatParameters(*model_);
    start_ = flat_.values().clone();
    at::manual_seed(1);
    records_.x = at::randn({kRecords, 5});
    records_.y = at::randint(0, 3, {kRecords}, at::kLong);
    records_.domain = at::zeros({kRecords}, at::kLong);
    ledger_.rehearse();  // runs are made again with the same noise, and compared
    plan_.records = kRecords;
    plan_.batch = 8;
    plan_.noise_multiplier = 1.0;
  }

  at::Tensor run(const at::Tensor& indices, int64_t round = 1) {
    flat_.values().copy_(start_);
    const ReleaseContext context{.ledger = ledger_, .round = round, .client = 0, .seed = 5};
    NoisyDescent descent(*model_, flat_);
    const auto result = descent.run(plan_, descent.channel(plan_, "model"), records_, indices, context,
                                    [&] { flat_.values().add_(flat_.gradient(), -kLearningRate); });
    EXPECT_TRUE(at::equal(result.release.values()[0].value, model_->shared_parameters()[0].value));
    return flat_.values().clone();
  }

  std::shared_ptr<models::Model> model_;
  models::FlatParameters flat_;
  at::Tensor start_;
  data::Records records_;
  DescentPlan plan_;
  Ledger ledger_;
};

TEST_F(Descent, WithoutClippingAndNoiseIsPlainDescent) {
  plan_.clip = 1e3;
  plan_.noise_multiplier = 1e-9;
  plan_.epochs = 2;
  const at::Tensor indices = at::arange(kRecords, at::kLong);
  const at::Tensor noisy = run(indices);

  flat_.values().copy_(start_);
  RandomStream order(NoiseSource::replay(5, "batches", 1, 0).bits(), "batch-order");
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (const at::Tensor& batch : sliced_epoch(kRecords, plan_.batch, order)) {
      flat_.zero_gradient();
      const at::Tensor logits = model_->logits(records_.x.index_select(0, batch));
      const at::Tensor loss = at::cross_entropy_loss(logits, records_.y.index_select(0, batch), {}, at::Reduction::Sum);
      (loss / plan_.expected_batch()).backward();
      const at::NoGradGuard no_grad;
      flat_.values().add_(flat_.gradient(), -kLearningRate);
    }
  }
  EXPECT_LT((noisy - flat_.values()).norm().item<double>(), 1e-4);
}

// A linear model that counts how often it is asked.
class Counting : public models::Model {
 public:
  explicit Counting(const models::ModelOptions& options, RandomStream init)
      : inner_(register_module("inner", models::make_model(options, {{5}, 3}, init))) {}

  at::Tensor features(const at::Tensor& x) override {
    ++asked;
    return inner_->features(x);
  }
  at::Tensor classify(const at::Tensor& features) override { return inner_->classify(features); }
  int64_t feature_width() const override { return inner_->feature_width(); }
  std::string head_name() const override { return "inner." + inner_->head_name(); }

  int asked = 0;

 private:
  std::shared_ptr<models::Model> inner_;
};

// How many slots a pass has is tried out at the parameters of the start: those of the first step with records would tell
// which that was.
TEST_F(Descent, SlotsAreChosenBeforeTheFirstStep) {
  models::ModelOptions options;
  options.name = "logistic";
  Counting model(options, RandomStream(1, "init"));
  const models::FlatParameters flat(model);
  plan_.sampling = Sampling::kAllocated;
  plan_.neighbours.adjacency = Adjacency::kAddRemove;
  NoisyDescent descent(model, flat);
  std::vector<int> asked;
  descent.run(plan_, descent.channel(plan_, "model"), records_, at::empty({0}, at::kLong),
              {.ledger = ledger_, .round = 1, .client = 0, .seed = 5}, [&] { asked.push_back(model.asked); });
  EXPECT_GT(asked.front(), 0);
  EXPECT_EQ(asked.back(), asked.front());
}

// A record that is alone in the first step, or not there: the second step sees the other record as it did.
TEST(DescentOfViews, AStepsViewsDependOnNoRecord) {
  RandomStream init(1, "init");
  models::ModelOptions options;
  options.name = "logistic";
  const auto model = models::make_model(options, {{1, 6, 6}, 3}, init);
  const models::FlatParameters flat(*model);
  const data::Records records{.x = (at::arange(72) * 37 % 251).view({2, 1, 6, 6}).to(at::kByte),
                              .y = at::tensor({0, 1}, at::kLong),
                              .domain = at::zeros({2}, at::kLong),
                              .texts = {}};
  DescentPlan plan;
  plan.records = 2;
  plan.batch = 1;
  plan.sampling = Sampling::kAllocated;
  plan.noise_multiplier = 1e-5;
  plan.neighbours.adjacency = Adjacency::kAddRemove;
  Ledger ledger;
  ledger.rehearse();
  const auto steps = [&](int64_t held, int64_t round) {
    std::vector<at::Tensor> gradients;
    NoisyDescent descent(*model, flat);
    descent.average_views({.count = 4, .shift = 2});
    descent.run(plan, descent.channel(plan, "model"), records, at::arange(held, at::kLong),
                {.ledger = ledger, .round = round, .client = 0, .seed = 5},
                [&] { gradients.push_back(flat.gradient().clone()); });
    return gradients;
  };
  const auto is_empty = [](const at::Tensor& step) { return step.abs().max().item<double>() < 1e-3; };
  int compared = 0;
  for (int64_t round = 1; round <= 40; ++round) {
    const auto with = steps(2, round), without = steps(1, round);
    if (!is_empty(without[0]) || is_empty(with[0])) continue;
    EXPECT_TRUE(at::allclose(with[1], without[1], 0, 1e-3)) << "in round " << round;
    ++compared;
  }
  EXPECT_GT(compared, 0);
}

TEST_F(Descent, StepsWithoutRecordsGetTheirNoiseAllTheSame) {
  for (const Sampling sampling : {Sampling::kDisjoint, Sampling::kPoisson}) {
    plan_.sampling = sampling;
    plan_.rate = 0.25;
    plan_.neighbours.adjacency = Adjacency::kAddRemove;
    plan_.epochs = 40;
    const auto round = static_cast<int64_t>(sampling) + 1;
    const at::Tensor moved = run(at::empty({0}, at::kLong), round) - start_;
    const double expected = kLearningRate * plan_.noise_multiplier * plan_.clip / plan_.expected_batch() *
                            std::sqrt(static_cast<double>(plan_.steps()));
    const double found = moved.to(at::kDouble).square().mean().sqrt().item<double>();
    EXPECT_NEAR(found / expected, 1.0, 5.0 / std::sqrt(2.0 * static_cast<double>(moved.numel())));
  }
}

// Layers with bounds of their own: pure noise of the level each was given; a layer that is not chosen stays.
TEST_F(Descent, LayersHaveNoiseOfTheirOwn) {
  RandomStream init(1, "init");
  models::ModelOptions options;
  options.name = "mlp";
  options.hidden = {40, 30};
  const auto model = models::make_model(options, {{5}, 3}, init);
  const models::FlatParameters flat(*model);
  plan_.neighbours.adjacency = Adjacency::kAddRemove;
  plan_.epochs = 20;
  int64_t round = 0;
  NoisyDescent descent(*model, flat);
  for (const bool together : {true, false}) {
    plan_.layers = {{.clip = 0.5, .weight = together ? 0 : 0.8}, {}, {.clip = 2.0, .weight = together ? 0 : 0.2}};
    flat.values().zero_();
    const ReleaseContext context{.ledger = ledger_, .round = ++round, .client = 0, .seed = 5};
    const auto result = descent.run(plan_, descent.channel(plan_, "model"), records_, at::empty({0}, at::kLong),
                                    context, [&] { flat.values().add_(flat.gradient()); });
    EXPECT_EQ(result.release.values().size(), 4U) << "weight and bias of two layers";
    const auto layers = models::trainable_layers(*model);
    ASSERT_EQ(layers.size(), 3U);
    double energy = 0;
    for (size_t i = 0; i < 3; ++i) {
      const double found = layers[i].parameters[0].value.square().mean().sqrt().item<double>();
      const double bound = plan_.layers[i].clip / (together ? 1 : std::sqrt(std::max(plan_.layers[i].weight, 1e-9)));
      const double expected = bound / plan_.expected_batch() * std::sqrt(static_cast<double>(plan_.steps()));
      const auto count = static_cast<double>(layers[i].parameters[0].value.numel());
      EXPECT_NEAR(found, expected, expected * 5 / std::sqrt(2 * count)) << layers[i].name;
      energy += static_cast<double>(layers[i].coordinates()) * std::pow(bound / plan_.expected_batch(), 2);
    }
    EXPECT_NEAR(descent.noise_norm(plan_) / std::sqrt(energy), 1, 0.01);
    EXPECT_EQ(descent.channel(plan_, "model").terms().noise_scale / descent.channel(plan_, "model").terms().sensitivity,
              1.0);
  }
}

// A clipper made for layers bounded together does not serve for layers bounded apart.
TEST_F(Descent, LayersAreBoundedAsEachPlanSays) {
  RandomStream init(1, "init");
  models::ModelOptions options;
  options.name = "mlp";
  options.hidden = {8};
  const auto model = models::make_model(options, {{5}, 3}, init);
  const models::FlatParameters flat(*model);
  const at::Tensor start = flat.values().clone();
  records_.x.mul_(1e3);
  plan_.records = plan_.batch = 1;
  plan_.noise_multiplier = 1e-6;
  const auto moved_by = [&](NoisyDescent& descent, double weight, int64_t round) {
    plan_.layers = {{.clip = 0.5, .weight = weight}, {.clip = 0.25, .weight = weight}};
    flat.values().copy_(start);
    const ReleaseContext context{.ledger = ledger_, .round = round, .client = 0, .seed = 5};
    descent.run(plan_, descent.channel(plan_, "model"), records_, at::zeros({1}, at::kLong), context,
                [&] { flat.values().add_(flat.gradient()); });
    return (flat.values() - start).norm().item<double>();
  };
  NoisyDescent shared(*model, flat), fresh(*model, flat);
  const double together = moved_by(shared, 0, 1), apart = moved_by(shared, 0.5, 2);
  EXPECT_NEAR(apart, moved_by(fresh, 0.5, 3), 1e-4);
  EXPECT_NEAR(apart, std::sqrt(0.25 + 0.0625), 1e-3) << "both layers at their bounds";
  EXPECT_LT(together, 0.51);
}

TEST_F(Descent, CountsTouchesNotSteps) {
  const NoisyDescent descent(*model_, flat_);
  plan_.epochs = 3;
  EXPECT_EQ(plan_.steps(), 12);
  EXPECT_EQ(descent.channel(plan_, "model").terms().steps, 3) << "disjoint batches: once per epoch";
  plan_.sampling = Sampling::kPoisson;
  plan_.rate = 0.25;
  const Event event = descent.channel(plan_, "model").terms();
  EXPECT_EQ(event.steps, 12) << "Poisson: every step, at the sampling rate";
  EXPECT_EQ(event.sampling_rate, 0.25);
}

TEST_F(Descent, RecordsWithRatesOfTheirOwnArePaidForByTheMostExposed) {
  const NoisyDescent descent(*model_, flat_);
  plan_.sampling = Sampling::kPoisson;
  plan_.rate = 0.25;
  plan_.record_rates = {.rates = {0.5, 0.1}, .shares = {0.2, 0.8}, .of = [](int64_t) { return 0U; }};
  const Event event = descent.channel(plan_, "model").terms();
  EXPECT_EQ(event.sampling_rate, 0.5);
  EXPECT_EQ(event.steps, 4) << "the number of steps is public and does not depend on who is sampled how often";
  EXPECT_NE(event.parameters.find("\"rates\":[0.5,0.1]"), std::string::npos) << event.parameters;
  EXPECT_NEAR(plan_.expected_batch(), kRecords * (0.2 * 0.5 + 0.8 * 0.1), 1e-12);
}

// Rows 0 … 9 have one rate, the others another; what is asked of is the row of the dataset, not the place in the shard.
TEST_F(Descent, RatesBelongToRowsOfTheDataset) {
  plan_.sampling = Sampling::kPoisson;
  plan_.rate = 0.001;
  plan_.record_rates = {
      .rates = {0.02, 0.3}, .shares = {0.5, 0.5}, .of = [](int64_t row) { return row < 10 ? 0U : 1U; }};
  const auto frequency = [&](int64_t first, int64_t round) {
    const ReleaseContext context{.ledger = ledger_, .round = round};
    NoisyDescent descent(*model_, flat_);
    const auto result = descent.run(plan_, descent.channel(plan_, "model"), records_,
                                    at::arange(first, first + 10, at::kLong), context, [] {});
    return static_cast<double>(result.samples) / (10.0 * static_cast<double>(plan_.steps()));
  };
  EXPECT_NEAR(frequency(0, 1), 0.02, 5 * std::sqrt(0.02 * 0.98 / 1e4));
  EXPECT_NEAR(frequency(10, 2), 0.3, 5 * std::sqrt(0.3 * 0.7 / 1e4));
}

TEST_F(Descent, ChargesReplacementTwice) {
  const NoisyDescent descent(*model_, flat_);
  plan_.neighbours.adjacency = Adjacency::kAddRemove;
  const Event added = descent.channel(plan_, "model").terms();
  plan_.neighbours.adjacency = Adjacency::kReplace;
  const Event replaced = descent.channel(plan_, "model").terms();
  EXPECT_NEAR(replaced.sensitivity / added.sensitivity, 2.0, 0.002);
  EXPECT_NEAR(replaced.noise_scale / added.noise_scale, 2.0, 0.002) << "and keeps the multiplier";
}

TEST_F(Descent, NoiseAndBatchesDependOnTheRoundAlone) {
  const at::Tensor indices = at::arange(kRecords, at::kLong);
  const at::Tensor first = run(indices, 1);
  EXPECT_TRUE(at::equal(first, run(indices, 1)));
  EXPECT_FALSE(at::equal(first, run(indices, 2)));
}

// Attack: one record whose gradient points one way, as hard as it can, against that record absent. The best test on the
// released weights must not tell the two apart better than the Gaussian that the ledger charges for.
TEST_F(Descent, OneLoudRecordIsHiddenAsWellAsTheLedgerSays) {
  plan_.neighbours.adjacency = Adjacency::kAddRemove;
  plan_.batch = kRecords;
  records_.x[0] = 1000.0;
  records_.y[0] = model_->logits(records_.x.narrow(0, 0, 1)).argmin();
  const at::Tensor with = at::arange(kRecords, at::kLong), without = at::arange(1, kRecords, at::kLong);
  plan_.noise_multiplier = 1e-6;
  const at::Tensor direction = run(with, 1) - run(without, 1);
  const double shift = direction.norm().item<double>() / kLearningRate * plan_.expected_batch();
  EXPECT_LE(shift, plan_.clip * (1 + 1e-3)) << "no record moves a step by more than the bound";
  EXPECT_GT(shift, 0.9 * plan_.clip) << "the attack is a real one";

  plan_.noise_multiplier = 0.5;
  constexpr int kTrials = 400;
  double sum[2] = {0, 0}, square[2] = {0, 0};
  for (int trial = 0; trial < kTrials; ++trial) {
    for (int world = 0; world < 2; ++world) {
      const at::Tensor moved = run(world == 0 ? without : with, 10 + 2 * trial + world) - start_;
      const double score = (moved * direction).sum().item<double>() / direction.norm().item<double>();
      sum[world] += score;
      square[world] += score * score;
    }
  }
  const double mean0 = sum[0] / kTrials, mean1 = sum[1] / kTrials;
  const double deviation = std::sqrt((square[0] + square[1]) / (2 * kTrials) - (mean0 * mean0 + mean1 * mean1) / 2);
  const double mu = (mean1 - mean0) / deviation;
  const double charged = 1 / plan_.noise_multiplier;
  EXPECT_LT(mu, charged + 4 * std::sqrt(2.0 / kTrials) * (1 + charged)) << "distinguishable beyond what was paid";
  EXPECT_GT(mu, 0.6 * charged) << "the audit must come near, or it is blind";
}

}  // namespace
}  // namespace sotto::privacy

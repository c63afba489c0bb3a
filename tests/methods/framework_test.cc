// What the servers of prototype frameworks make of prototypes, and what clients make of the answer.
#include "methods/prototypes/framework.h"

#include "methods/prototypes/entries.h"
#include "methods/prototypes/prototype_model.h"

#include <ATen/ATen.h>

#include <gtest/gtest.h>

#include <cmath>
#include <map>

namespace sotto::methods {
namespace {

PrototypeSet set_of(const std::vector<float>& values, const std::vector<int64_t>& classes,
                    const std::vector<float>& weights) {
  return {at::tensor(values).view({static_cast<int64_t>(classes.size()), -1}), at::tensor(classes, at::kLong),
          at::tensor(weights)};
}

GeneratorContext three_classes() {
  GeneratorContext context;
  context.shape = {.width = 2, .classes = 3};
  return context;
}

TEST(Aggregation, WeightedMeansAreOverThoseWhoHoldTheClass) {
  const std::vector<PrototypeSet> clients = {set_of({2, 0, 4, 4}, {0, 2}, {1, 5}), set_of({6, 8}, {0}, {3})};
  const PrototypeSet global = weighted_means(clients, three_classes());
  EXPECT_TRUE(global.classes.equal(at::tensor({0, 2}, at::kLong))) << "nobody holds class 1";
  EXPECT_TRUE(at::allclose(global.values, at::tensor({5.0F, 6.0F, 4.0F, 4.0F}).view({2, 2})));
  const PrototypeSet plain = plain_means(clients, three_classes());
  EXPECT_TRUE(at::allclose(plain.values[0], at::tensor({4.0F, 4.0F})));
  EXPECT_TRUE(weighted_means({}, three_classes()).empty());
}

TEST(Aggregation, NoisyCountsAreAddedBeforeTheyAreCut) {
  // Sums 10 and 30 with counts 5 and -1, of which at least 4 are believed: 40/(4·√2), not 10/5 and 30/4 averaged.
  GeneratorContext context = three_classes();
  context.least = 4;
  context.noise = {.sum = 1, .count = 4};
  const std::vector<PrototypeSet> clients = {set_of({10 / 5.0F, 0}, {0}, {5}), set_of({30 / 4.0F, 0}, {0}, {-1})};
  EXPECT_NEAR(weighted_means(clients, context).values[0][0].item<double>(), 40 / (4 * std::sqrt(2.0)), 1e-5);
}

TEST(Aggregation, FinchPerClassKeepsClassesApart) {
  const std::vector<PrototypeSet> clients = {
      set_of({1, 0, 0, 1}, {0, 1}, {1, 1}), set_of({1, 0.1F, 0.1F, 1}, {0, 1}, {1, 1}),
      set_of({-1, 0, 0, -1}, {0, 1}, {1, 1}), set_of({-1, 0.1F, 0.1F, -1}, {0, 1}, {1, 1})};
  const PrototypeSet centres = finch_per_class(clients, three_classes());
  EXPECT_TRUE(centres.classes.equal(at::tensor({0, 0, 1, 1}, at::kLong)));
  EXPECT_TRUE(at::allclose(centres.values[0], at::tensor({1.0F, 0.05F})));
  EXPECT_TRUE(centres.weights.equal(at::full({4}, 2.0)));
}

// What it is for: noisy prototypes end nearer to the truth, and classes of which nothing is known are dropped.
TEST(Aggregation, ShrinkingBringsNoisyPrototypesNearerToTheTruth) {
  const int64_t classes = 10, width = 64;
  double raw_error = 0, error = 0;
  int64_t dropped = 0;
  for (uint64_t seed = 0; seed < 30; ++seed) {
    RandomStream stream(seed, "truth");
    const at::Generator generator = stream.torch_generator();
    const at::Tensor truth = at::empty({classes, width}).normal_(0, 1, generator);
    GeneratorContext context;
    context.shape = {.width = width, .classes = classes};
    context.noise = {.sum = 20, .count = 2};
    context.least = 2;
    std::vector<PrototypeSet> clients;
    for (int i = 0; i < 4; ++i) {
      const at::Tensor sums = 20 * truth + at::empty({classes, width}).normal_(0, context.noise.sum, generator);
      clients.push_back({sums / 20, at::arange(classes, at::kLong), at::full({classes}, 20.0)});
    }
    const PrototypeSet raw = weighted_means(clients, context),
                       better = weighted_means(shrunk(clients, context), context);
    raw_error += (raw.values - truth).square().sum().item<double>();
    error += (better.values - truth.index_select(0, better.classes)).square().sum().item<double>();

    for (PrototypeSet& set : clients)
      set.values = at::empty({classes, width}).normal_(0, context.noise.sum / 20, generator);
    dropped += classes - std::min<int64_t>(classes, weighted_means(shrunk(clients, context), context).size());
  }
  EXPECT_LT(error, 0.9 * raw_error);
  EXPECT_GT(dropped, 30 * classes / 3) << "of pure noise a good part is seen through";
}

TEST(Aggregation, ShrinkingWithoutNoiseChangesNothing) {
  const std::vector<PrototypeSet> clients = {set_of({2, 0}, {0}, {1})};
  EXPECT_TRUE(shrunk(clients, three_classes())[0].values.equal(clients[0].values));
}

TEST(PublicProjection, KeepsLengthsOnAverageAndIsOrthonormal) {
  for (const auto& [rows, d] : {std::pair<int64_t, int64_t>{96, 32}, {32, 96}}) {
    const at::Tensor p = public_projection(rows, d, 7);
    at::manual_seed(1);
    const at::Tensor x = at::randn({2000, rows});
    const double ratio = x.mm(p).square().sum().item<double>() / x.square().sum().item<double>();
    EXPECT_NEAR(ratio, 1.0, 0.02);
    const at::Tensor gram = rows >= d ? p.t().mm(p) : p.mm(p.t());
    EXPECT_TRUE(at::allclose(gram, gram[0][0] * at::eye(gram.size(0)), 1e-4, 1e-4));
    EXPECT_TRUE(p.equal(public_projection(rows, d, 7)));
    EXPECT_FALSE(p.equal(public_projection(rows, d, 8)));
  }
}

TEST(PrototypeModel, StartsAsThePublicProjectionOfItsInput) {
  PrototypeModelOptions options;
  options.encoder.name = "adapter";
  options.width = 4;
  options.hidden = {5};
  const models::Task task{{6}, 3};
  PrototypeModel model(options, task, 11);
  const at::Tensor x = at::arange(12, at::kFloat).view({2, 6});
  EXPECT_TRUE(at::allclose(model.features(x), x.mm(public_projection(6, 4, 11))));
  EXPECT_EQ(model.logits(x).sizes(), (std::vector<int64_t>{2, 3}));
  for (const auto& parameter : model.shared_parameters()) {
    EXPECT_EQ(parameter.name.find("encoder.head"), std::string::npos) << "the encoder's own classifier is not used";
  }
}

TEST(PrototypeModel, ReadsItsOwnBlockOfFeatures) {
  PrototypeModelOptions options;
  options.encoder.name = "adapter";
  options.width = 2;
  options.first_column = 3;
  options.columns = 2;
  PrototypeModel model(options, {{6}, 3}, 11);
  const at::Tensor x = at::arange(6, at::kFloat).view({1, 6});
  EXPECT_TRUE(model.features(x).equal(at::tensor({3.0F, 4.0F}).view({1, 2})));
}

TEST(PrototypeModel, TheTeacherIsACopyThatIsNotTrained) {
  PrototypeModelOptions options;
  options.encoder.name = "adapter";
  options.width = 4;
  PrototypeModel model(options, {{4}, 3}, 1);
  const auto teacher = model.copy_of_head();
  const at::Tensor z = at::ones({1, 4});
  EXPECT_TRUE(teacher->forward(z).equal(model.classify(z)));
  for (const auto& parameter : teacher->parameters()) EXPECT_FALSE(parameter.requires_grad());
}

TEST(PrototypeModel, TheTeacherFollowsAsAMovingAverage) {
  PrototypeModelOptions options;
  options.encoder.name = "adapter";
  options.width = 4;
  options.hidden = {};
  PrototypeModel model(options, {{4}, 3}, 1);
  const auto teacher = model.copy_of_head();
  const at::NoGradGuard no_grad;
  for (auto& parameter : teacher->parameters()) parameter.fill_(1.0);
  for (auto& parameter : model.head().parameters()) parameter.fill_(3.0);
  follow(*teacher, model.head(), 0.9);
  follow(*teacher, model.head(), 0.9);
  // 1 → 0.9 + 0.3 = 1.2 → 1.08 + 0.3 = 1.38
  for (const auto& parameter : teacher->parameters())
    EXPECT_TRUE(at::allclose(parameter, at::full_like(parameter, 1.38)));
}

// Each framework's loss on one record, against the sum worked out by hand.
class Worked : public ::testing::Test {
 protected:
  static std::unique_ptr<Framework> framework(const std::string& name);

  Worked() {
    batch_.features = at::tensor({3.0F, 4.0F}).view({1, 2});
    batch_.logits = at::tensor({0.0F, std::log(3.0F)}).view({1, 2});
    batch_.labels = at::tensor({1}, at::kLong);
    batch_.source = batch_.features;
    fit_ = -std::log(0.75);
    append(broadcast_, kGlobal, set_of({1, 0, 0, 1}, {0, 1}, {1, 1}));
  }

  // -log share of class 1 for cosines 0.6 and 0.8, transformed.
  static double contrasted(double other, double own) {
    return -std::log(std::exp(own / 0.07) / (std::exp(own / 0.07) + std::exp(other / 0.07)));
  }

  LocalBatch batch_;
  NamedTensors broadcast_;
  double fit_ = 0;
};

std::unique_ptr<Framework> Worked::framework(const std::string& name) {
  settings::Section section(nlohmann::json::object(), "method",
                            std::make_shared<settings::Source>(settings::Source{.file = "test", .line = {}}));
  static const std::map<std::string, FrameworkReader> makers = {{"fedproto", make_fedproto}, {"fedpcl", make_fedpcl},
                                                                {"fpl", make_fpl},           {"fedplvm", make_fedplvm},
                                                                {"fedtgp", make_fedtgp},     {"mpft", make_mpft}};
  return makers.at(name)(section);
}

TEST_F(Worked, WithoutPrototypesEveryLossIsTheFit) {
  for (const char* name : {"fedproto", "fedpcl", "fpl", "fedplvm", "fedtgp", "mpft"}) {
    EXPECT_NEAR(framework(name)->loss(batch_, {}).item<double>(), fit_, 1e-6) << name;
  }
}

TEST_F(Worked, FedProto) {
  EXPECT_NEAR(framework("fedproto")->loss(batch_, broadcast_).item<double>(), fit_ + 0.1 * (9 + 9) / 2, 1e-5);
}

TEST_F(Worked, FedTgp) {
  EXPECT_NEAR(framework("fedtgp")->loss(batch_, broadcast_).item<double>(), fit_ + (9 + 9) / 2.0, 1e-5);
}

TEST_F(Worked, FedPcl) {
  // Three clients; the last one lacks the record's class and does not count.
  broadcast_.push_back(
      {"clients.values",
       at::tensor({0.0F, 1.0F, 1.0F, 0.0F, 1.0F, 0.0F, 0.0F, 1.0F, 1.0F, 0.0F, 0.0F, 0.0F}).view({3, 2, 2})});
  broadcast_.push_back({"clients.held", at::tensor({1, 1, 1, 1, 1, 0}, at::kLong).view({3, 2}).to(at::kBool)});
  EXPECT_NEAR(framework("fedpcl")->loss(batch_, broadcast_).item<double>(),
              fit_ + contrasted(0.6, 0.8) + (contrasted(0.8, 0.6) + contrasted(0.6, 0.8)) / 2, 1e-4);
}

TEST_F(Worked, Fpl) {
  append(broadcast_, "unbiased", set_of({1, 2}, {1}, {1}));
  EXPECT_NEAR(framework("fpl")->loss(batch_, broadcast_).item<double>(),
              fit_ + 0.5 * contrasted(0.6, 0.8) + 0.5 * (4 + 4) / 2, 1e-4);
}

TEST_F(Worked, FedPlvm) {
  const double other = std::pow(0.6, 0.25), own = std::pow(0.8, 0.25);
  EXPECT_NEAR(framework("fedplvm")->loss(batch_, broadcast_).item<double>(),
              fit_ + 0.5 * (contrasted(other, own) + 1 - own), 1e-4);
}

TEST_F(Worked, Mpft) {
  // A teacher that answers (0, 4 ln 3): at T = 4 that is (1, 3)/4; the student's logits at T = 4 are (1, 3^¼).
  const auto add = [&](const char* name, const at::Tensor& value) { broadcast_.push_back({name, value}); };
  add("teacher.down.weight", at::zeros({1, 2}));
  add("teacher.down.bias", at::zeros({1}));
  add("teacher.up.weight", at::zeros({2, 1}));
  add("teacher.up.bias", at::zeros({2}));
  add("teacher.out.weight", at::zeros({2, 2}));
  add("teacher.out.bias", at::tensor({0.0F, 4 * std::log(3.0F)}));
  const double root = std::pow(3.0, 0.25);
  const double kl = 0.25 * std::log(0.25 * (1 + root)) + 0.75 * std::log(0.75 * (1 + root) / root);
  EXPECT_NEAR(framework("mpft")->loss(batch_, broadcast_).item<double>(), fit_ + 0.3 * 16 * kl, 1e-4);
}

TEST_F(Worked, ServersAnswerForClassesThatSomebodyHolds) {
  GeneratorContext context;
  context.shape = {.width = 2, .classes = 4};
  context.seed = 3;
  batch_.logits = at::zeros({1, 4});
  const std::vector<PrototypeSet> clients = {set_of({1, 0, 0, 1}, {0, 1}, {4, 4}),
                                             set_of({2, 0, -1, -1}, {0, 3}, {4, 1})};
  for (const char* name : {"fedproto", "fedpcl", "fpl", "fedplvm", "fedtgp", "mpft"}) {
    const NamedTensors made = framework(name)->generate(clients, context);
    const PrototypeSet global = find_prototypes(made, kGlobal);
    for (int64_t c = 0; c < 4; ++c)
      EXPECT_EQ(global.classes.eq(c).any().item<bool>(), c != 2) << name << ", class " << c;
    EXPECT_TRUE(all_finite(made)) << name;
    const at::Tensor loss = framework(name)->loss(batch_, made);
    EXPECT_TRUE(std::isfinite(loss.item<double>())) << name;
  }
}

TEST_F(Worked, FedTgpPlacesEveryPrototypeNearestToItsOwnClients) {
  GeneratorContext context;
  context.shape = {.width = 2, .classes = 3};
  const std::vector<PrototypeSet> clients = {set_of({5, 0, 0, 5, -5, -5}, {0, 1, 2}, {1, 1, 1}),
                                             set_of({6, 1, 1, 6, -6, -4}, {0, 1, 2}, {1, 1, 1})};
  const PrototypeSet global = find_prototypes(framework("fedtgp")->generate(clients, context), kGlobal);
  for (const PrototypeSet& client : clients) {
    EXPECT_TRUE(at::cdist(client.values, global.values).argmin(1).equal(client.classes));
  }
}

TEST_F(Worked, MpftTeachesWhatPrototypesSay) {
  GeneratorContext context;
  context.shape = {.width = 2, .classes = 2};
  const std::vector<PrototypeSet> clients = {set_of({5, 0, 0, 5}, {0, 1}, {1, 1})};
  const NamedTensors made = framework("mpft")->generate(clients, context);
  batch_.labels = at::tensor({1}, at::kLong);
  batch_.source = at::tensor({0.0F, 5.0F}).view({1, 2});
  const auto loss_of = [&](float own) {
    batch_.logits = at::tensor({0.0F, own}).view({1, 2});
    return framework("mpft")->loss(batch_, made).item<double>() - std::log1p(std::exp(-own));
  };
  EXPECT_LT(loss_of(1), loss_of(-1)) << "the teacher prefers class 1 too";
}

}  // namespace
}  // namespace sotto::methods

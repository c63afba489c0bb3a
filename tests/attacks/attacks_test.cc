// Attacks succeed where they must, fail where they must, and know who was trained on.
#include "../support/temp_folder.h"
#include "attacks/lira.h"
#include "attacks/parts/extractor.h"
#include "attacks/parts/generator.h"
#include "attacks/parts/inversion.h"
#include "attacks/parts/prototypes.h"
#include "attacks/parts/shadows.h"
#include "attacks/shadow.h"
#include "attacks/target.h"
#include "audit/method_audits.h"
#include "audit/movement.h"
#include "base/error.h"
#include "base/files.h"
#include "io/safetensors.h"
#include "models/flat.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/jit/api/module.h>

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <iterator>
#include <set>

namespace sotto::attacks {
namespace {

std::shared_ptr<models::Model> model(const std::string& name, std::vector<int64_t> shape, int64_t classes) {
  RandomStream init(3, "model-init");
  models::ModelOptions options;
  options.name = name;
  options.hidden = {32};
  return models::make_model(options, {std::move(shape), classes}, init);
}

at::Tensor gradient_of(models::Model& model, const at::Tensor& x, const std::vector<int64_t>& labels) {
  std::vector<at::Tensor> parameters, flat;
  for (const auto& [name, value] : model.shared_parameters()) parameters.push_back(value);
  const at::Tensor loss = at::cross_entropy_loss(model.logits(x), at::tensor(labels, at::kLong));
  for (const at::Tensor& part : torch::autograd::grad({loss}, parameters)) flat.push_back(part.reshape({-1}));
  return at::cat(flat);
}

TEST(Labels, AreReadOffTheBias) {
  EXPECT_EQ(recover_labels(at::tensor({0.2, -0.8, 0.6}), 1), (std::vector<int64_t>{1}));
  // Two records of class 0, one of class 2, predictions uniform: gradient 1/3 - counts/3.
  EXPECT_EQ(recover_labels(at::tensor({1.0 / 3 - 2.0 / 3, 1.0 / 3, 0.0}), 3), (std::vector<int64_t>{0, 0, 2}));
}

TEST(GradientInversion, FindsTheRecordBehindACleanGradientAndNotBehindANoisyOne) {
  const auto mlp = model("mlp", {12}, 4);
  const at::Tensor x = at::linspace(-0.9, 0.8, 12).reshape({1, 12});
  const at::Tensor gradient = gradient_of(*mlp, x, {2});
  const InversionOptions options{.steps = 600, .variation = 0};
  const Inverted found = invert_gradient(*mlp, gradient, 1, {12}, options);
  EXPECT_EQ(found.labels, (std::vector<int64_t>{2}));
  EXPECT_GT(found.cosine, 0.99);
  EXPECT_LT((found.x - x).square().mean().item<double>(), 0.02);
  at::Generator generator = RandomStream(1, "noise").torch_generator();
  const at::Tensor noise = at::empty_like(gradient).normal_(0, 1, generator);
  const Inverted lost = invert_gradient(*mlp, gradient + 3 * gradient.norm() * noise / noise.norm(), 1, {12}, options);
  EXPECT_GT((lost.x - x).square().mean().item<double>(), 5 * (found.x - x).square().mean().item<double>());
}

TEST(GradientInversion, LbfgsFindsIt) {
  const auto mlp = model("mlp", {12}, 4);
  const at::Tensor x = at::linspace(-0.9, 0.8, 12).reshape({1, 12});
  const at::Tensor gradient = gradient_of(*mlp, x, {2});
  InversionOptions options{.descent = Descent::kLbfgs, .steps = 60, .variation = 0};
  const Inverted found = invert_gradient(*mlp, gradient, 1, {12}, options);
  EXPECT_LT((found.x - x).square().mean().item<double>(), 0.02);
  options = {.descent = Descent::kAdam, .steps = 15, .variation = 0};
  EXPECT_GT(found.cosine, invert_gradient(*mlp, gradient, 1, {12}, options).cosine);
}

TEST(GradientInversion, GoesThroughConvolutions) {
  const auto cnn = model("cnn", {1, 28, 28}, 10);
  const at::Tensor x = at::linspace(-1, 1, 784).reshape({1, 1, 28, 28});
  const Inverted found = invert_gradient(*cnn, gradient_of(*cnn, x, {7}), 1, {1, 28, 28}, {.steps = 12});
  EXPECT_EQ(found.labels, (std::vector<int64_t>{7}));
  EXPECT_GT(found.cosine, 0.2);
}

TEST(Hijacking, FindsAnInputWithThatFeature) {
  const auto mlp = model("mlp", {12}, 4);
  const at::Tensor prototypes = mlp->features(at::linspace(-0.9, 0.8, 48).reshape({4, 12})).detach();
  const Inverted found = hijack_features(*mlp, prototypes, {12}, {.steps = 500, .variation = 0});
  EXPECT_GT(found.cosine, 0.97);
  EXPECT_EQ(found.x.size(0), 4);
}

TEST(Hijacking, AsPrintedTheDistanceIsSmallAndInputsStayBetweenNoughtAndOne) {
  const auto mlp = model("mlp", {12}, 4);
  const at::Tensor prototypes = mlp->features(at::linspace(0.1, 0.9, 48).reshape({4, 12})).detach();
  const auto distance = [&](const at::Tensor& x) {
    return (mlp->features(x) - prototypes).square().sum(1).mean().item<double>();
  };
  const Inverted alike = hijack_features(*mlp, prototypes, {12}, {.steps = 500, .variation = 0});
  const Inverted near =
      hijack_features(*mlp, prototypes, {12}, {.steps = 2000, .lr = 0.01, .variation = 0, .as_printed = true});
  EXPECT_LT(distance(near.x), 1e-3);
  EXPECT_LT(distance(near.x), distance(alike.x)) << "a direction is not a place";
  EXPECT_GE(near.x.min().item<double>(), 0.0);
  const auto cnn = model("cnn", {1, 28, 28}, 10);
  const at::Tensor wanted = cnn->features(at::full({1, 1, 28, 28}, -0.9F)).detach();
  const Inverted picture = hijack_features(*cnn, wanted, {1, 28, 28}, {.steps = 20, .lr = 0.1, .as_printed = true});
  EXPECT_LT(picture.x.min().item<double>(), 0.0) << "pictures between 0 and 1 are the model's between -1 and 1";
}

TEST(Prototypes, ComeInThreeForms) {
  NamedTensors paper, sound, clusters, neither;
  paper.push_back({"prototypes", at::tensor({1.0, 1.0, 0.0, 0.0, 2.0, 0.0}).reshape({3, 2})});
  EXPECT_TRUE(prototypes_in(paper, 3).classes.equal(at::tensor({0, 2}, at::kLong))) << "class 1 is not held";
  sound.push_back({"sums", at::full({2, 3}, 6.0)});
  sound.push_back({"counts", at::tensor({3.0, -1.0})});
  EXPECT_TRUE(prototypes_in(sound, 2).values[0].equal(at::full({3}, 2.0F)));
  EXPECT_TRUE(prototypes_in(sound, 2).values[1].equal(at::full({3}, 6.0F))) << "a noisy count below one is one";
  EXPECT_TRUE(prototypes_in(sound, 1).classes.equal(at::tensor({0, 0}, at::kLong))) << "two cells of one class";
  clusters.push_back({"prototypes", at::ones({2, 3})});
  clusters.push_back({"classes", at::tensor({4, 4}, at::kLong)});
  EXPECT_TRUE(prototypes_in(clusters, 5).classes.equal(at::tensor({4, 4}, at::kLong)));
  EXPECT_FALSE(prototypes_in(neither, 2).values.defined());
}

TEST(Prototypes, TheNearestOfTheClassCounts) {
  const PrototypeTable table{at::tensor({0.0F, 0.0F, 3.0F, 0.0F, 1.0F, 1.0F}).reshape({3, 2}),
                             at::tensor({0, 0, 1}, at::kLong)};
  const at::Tensor x = at::tensor({2.0F, 0.0F}).repeat({3, 1});
  const at::Tensor scores = prototype_scores(x, at::tensor({0, 1, 2}, at::kLong), table);
  EXPECT_NEAR(scores[0].item<double>(), -1, 1e-9);
  EXPECT_NEAR(scores[1].item<double>(), -2, 1e-9);
  EXPECT_TRUE(std::isinf(scores[2].item<double>())) << "no prototype of its class";
}

TEST(Prototypes, MembersOfASmallClassStandOut) {
  const at::Tensor features = at::randn({200, 64}), labels = at::arange(200).remainder(50);
  PrototypeTable table{at::zeros({50, 64}), at::arange(50)};
  for (int64_t c = 0; c < 50; ++c) table.values[c] = (features[c] + features[c + 50]) / 2;
  const at::Tensor scores = prototype_scores(features, labels, table);
  Scores split;
  for (int64_t i = 0; i < 200; ++i) (i < 100 ? split.members : split.others).push_back(scores[i].item<double>());
  EXPECT_GT(auc(split), 0.95);
}

TEST(Movement, ModelsUpdatesAndPartsOfThem) {
  NamedTensors before;
  before.push_back({"a", at::full({2}, 5.0)});
  before.push_back({"b", at::full({3}, -4.0)});
  NamedTensors as_model, as_update, part, flat;
  as_model.push_back({"a", at::full({2}, 5.5)});
  as_model.push_back({"b", at::full({3}, -4.0)});
  const at::Tensor moved = at::tensor({0.5, 0.5, 0.0, 0.0, 0.0}, at::kFloat);
  EXPECT_TRUE(at::allclose(audit::movement(as_model, before), moved));
  as_update.push_back({"a", at::full({2}, 0.5)});
  as_update.push_back({"b", at::full({3}, 0.0)});
  EXPECT_TRUE(at::allclose(audit::movement(as_update, before), moved));
  part.push_back({"a", at::full({2}, 5.5)});
  EXPECT_TRUE(at::allclose(audit::movement(part, before), moved));
  flat.push_back({"update", moved});
  EXPECT_TRUE(at::allclose(audit::movement(flat, before), moved));
}

const std::string kOverfit = "[method]\nname = \"fedavg\"\n[federation]\nbatch = 4\nlr = 0.5\nlocal_epochs = 40\n";

TEST(Membership, MembersWereTrainedOnAndOthersWereNot) {
  const auto setup = audit::audit_federation(kOverfit);
  const Membership membership = members_and_others(*setup, 1, 20, 5);
  EXPECT_EQ(membership.records.size(), 2 * membership.members);
  const data::Shard shard = setup->partition().shard(1);
  const auto holds = [](const at::Tensor& all, const at::Tensor& rows, const at::Tensor& record) {
    return (all.index_select(0, rows) == record).all(1).any().item<bool>();
  };
  const data::Dataset& dataset = setup->dataset();
  for (int64_t i = 0; i < membership.records.size(); ++i) {
    const at::Tensor record = membership.records.x[i];
    EXPECT_EQ(holds(dataset.train.x, shard.train, record), i < membership.members) << i;
    const bool held_out = (dataset.test.x == record).all(1).any().item<bool>();
    EXPECT_EQ(held_out, i >= membership.members) << i;
  }
}

// Whoever holds one class only would otherwise be told by it.
TEST(Membership, OthersAreOfTheClientsOwnClasses) {
  const auto alike = audit::audit_federation(kOverfit);
  config::RunSpec spec = alike->spec();
  spec.data.partition = "pathological";
  spec.data.classes_per_client = 1;
  const federation::Setup setup(spec, std::make_shared<models::TaskData>(alike->data()));
  for (const int64_t client : {0, 1}) {
    const Membership membership = members_and_others(setup, client, 20, 5);
    const at::Tensor own = setup.dataset().train.y.index_select(0, setup.partition().shard(client).train);
    EXPECT_TRUE((membership.records.y == own[0]).all().item<bool>()) << client;
  }
}

TEST(Membership, ShadowsHoldHalfAndAreKept) {
  const auto setup = audit::audit_federation(kOverfit);
  const Membership membership = members_and_others(*setup, 1, 20, 5);
  const test::TempFolder folder;
  ShadowOptions options{.shadows = 4, .threads = 2, .cache = folder.path() / "shadows.safetensors"};
  const Shadows first = train_shadows(*setup, membership.records, options);
  EXPECT_TRUE((first.held.sum(1) == membership.members).all().item<bool>());
  const auto written = std::filesystem::last_write_time(options.cache);
  const Shadows again = train_shadows(*setup, membership.records, options);
  EXPECT_EQ(std::filesystem::last_write_time(options.cache), written);
  EXPECT_TRUE(first.logits.equal(again.logits));
  options.seed = 2;
  const auto elsewhere = folder.path() / "shadows.safetensors.parts" / "of another attack that is under way";
  std::filesystem::create_directories(elsewhere);
  EXPECT_FALSE(train_shadows(*setup, membership.records, options).held.equal(first.held)) << "another seed, others";
  EXPECT_TRUE(std::filesystem::exists(elsewhere));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(elsewhere.parent_path()), {}), 1) << "our own are gone";
}

TEST(Membership, ConfidenceIsTheLogOdds) {
  const at::Tensor logits = at::tensor({1.0, 3.0, -2.0}).log_softmax(0).unsqueeze(0);
  const double p = logits.exp()[0][1].item<double>();
  EXPECT_NEAR(scaled_confidence(logits, at::tensor({1}, at::kLong)).item<double>(), std::log(p / (1 - p)), 1e-6);
}

// A world in which members differ by as much as we say.
TEST(Membership, LiraFindsMembersOfAnOverfittedModel) {
  constexpr int64_t shadows = 32, records = 200, members = 100;
  at::Generator generator = RandomStream(1, "lira").torch_generator();
  const at::Tensor labels = at::zeros({records}, at::kLong);
  const at::Tensor difficulty = at::empty({records}).normal_(0, 3, generator);
  Shadows known;
  known.held = at::empty({shadows, records}).uniform_(0, 1, generator) < 0.5;
  const auto logits = [&](const at::Tensor& held) {
    at::Tensor noise = at::empty(held.sizes()).normal_(0, 1, generator);
    return at::stack({difficulty + 3 * held.to(at::kFloat) + noise, at::zeros(held.sizes())}, -1);
  };
  known.logits = logits(known.held);
  const at::Tensor target = logits(at::arange(records) < members);
  EXPECT_GT(auc(lira_scores(known, target, labels, members)), 0.95) << "shift of 3 standard deviations";
  EXPECT_GT(auc(shadow_scores(known, target, labels, members, 1).scores), 0.6)
      << "without knowing how hard each record is";
  const at::Tensor unaffected = logits(at::zeros({records}, at::kBool));
  EXPECT_NEAR(auc(lira_scores(known, unaffected, labels, members)), 0.5, 0.15);
}

TEST(Baseline, IsTheSameFederationWithoutPrivacy) {
  const auto setup = audit::audit_federation(
      "[method]\nname = \"ldp-fedavg\"\n[privacy]\nepsilon = 1\ndelta = 1e-5\nadjacency = \"replace\"\n");
  const auto plain = without_privacy(*setup);
  EXPECT_EQ(plain.spec().method, "fedavg");
  EXPECT_FALSE(plain.spec().privacy);
  EXPECT_EQ(plain.spec().federation, setup->spec().federation);
  EXPECT_TRUE(plain.partition().shard(2).train.equal(setup->partition().shard(2).train));
  const auto trained = model_after_running(plain, std::nullopt, 1);
  EXPECT_EQ(predict_all(*trained, plain.dataset().test).size(0), 24);
}

std::string private_method(const std::string& name, const std::string& options) {
  return fmt::format("[method]\nname = \"{}\"\n{}[privacy]\nepsilon = 1\ndelta = 1e-5\nadjacency = \"replace\"\n", name,
                     options);
}

TEST(Baseline, OfPrototypesAndPromptsIsTheSameMethodInTheClear) {
  const auto mechanism = [](const federation::Setup& setup) { return setup.plan_for(0).front().terms().mechanism; };
  for (const auto variant : {methods::Variant::kSound, methods::Variant::kPaper}) {
    const auto setup = audit::audit_federation(
        private_method("fedproto", fmt::format("variant = \"{}\"\nwidth = 4\nhead = [8]\n", settings::word(variant))));
    const auto plain = without_privacy(*setup);
    EXPECT_EQ(plain.spec().method, "fedproto");
    EXPECT_EQ(plain.spec().variant, variant) << "the encoder is trained or it is not, as in the run";
    EXPECT_NE(mechanism(*setup), privacy::kClearMechanism);
    EXPECT_EQ(mechanism(plain), privacy::kClearMechanism);
    const Rerun last = rerun(plain, 2, 1, 1);
    EXPECT_EQ(prototypes_in(last.upload, 2).values.size(0), 2);
    EXPECT_FALSE(last.state.empty());
  }
  for (const char* name : {"dp-fpl", "promptfl", "fedotp", "fedpgp"}) {
    const auto plain =
        without_privacy(*audit::audit_federation(private_method(name, "encoder = \"tiny\"\nlength = 8\n")));
    EXPECT_EQ(plain.spec().method, name);
    EXPECT_EQ(mechanism(plain), privacy::kClearMechanism);
  }
}

TEST(Baseline, ARoundRunAgainHasTheEncoderThatMadeItsPrototypes) {
  const auto ground = audit::audit_federation(
      "[method]\nname = \"fedproto\"\nvariant = \"paper\"\nmechanism = \"none\"\nclosing_round = true\nwidth = 4\nhead "
      "= [8]\n");
  config::RunSpec spec = ground->spec();
  spec.rounds = 3;
  const federation::Setup setup(spec, std::make_shared<models::TaskData>(ground->data()));
  const auto means_after = [&](const Rerun& run) {
    const auto method = setup.method().make_client(setup.client_context());
    method->select(run.broadcast, run.state);
    data::Batch own;
    data::gather(setup.dataset().train, setup.partition().shard(1).train.contiguous(), own);
    const at::NoGradGuard no_grad;
    const at::Tensor features = method->features(own.x);
    std::vector<at::Tensor> means;
    for (int64_t c = 0; c < 2; ++c) means.push_back(features.index({own.y == c}).mean(0));
    return at::stack(means);
  };
  const Rerun second = rerun(setup, 1, 2, 1), last = rerun(setup, 1, 3, 1);
  EXPECT_EQ(second.broadcast.round, 2);
  const at::Tensor sent = prototypes_in(second.upload, 2).values;
  EXPECT_TRUE(at::allclose(means_after(second), sent, 1e-4, 1e-5));
  EXPECT_TRUE(last.upload.empty()) << "nothing is sent in the last round, which trains on";
  EXPECT_FALSE(at::allclose(means_after(last), sent, 1e-4, 1e-5));
}

TEST(Extractors, FilesThatAreNoneAreRefused) {
  const test::TempFolder folder;
  write_file_atomically(folder.path() / "notes.pt", "not a module");
  EXPECT_THROW(torch_script_extractor(folder.path() / "notes.pt"), UserError);
  EXPECT_THROW(torch_script_extractor(folder.path() / "nowhere.pt"), UserError);
}

TEST(Extractors, AnswersHaveOneRowForEachRecord) {
  const test::TempFolder folder;
  const auto saved = [&](const std::string& name, const std::string& body) {
    torch::jit::Module module("Extractor");
    module.define("def forward(self, x):\n  return " + body + "\n");
    module.save((folder.path() / name).string());
    return torch_script_extractor(folder.path() / name);
  };
  const at::Tensor x = at::rand({300, 1, 4, 4});
  EXPECT_TRUE(saved("good.pt", "x.flatten(1) * 2").of(x).equal(x.flatten(1) * 2)) << "in batches";
  EXPECT_THROW(saved("pictures.pt", "x").of(x), UserError);
  EXPECT_THROW(saved("one.pt", "x.flatten(1)[0:1]").of(x), UserError);
  EXPECT_THROW(saved("fails.pt", "x.reshape([7, 13])").of(x), UserError);
}

TEST(Gan, ItsPicturesAreOfTheClassesThatWereAskedFor) {
  const auto setup = audit::audit_federation(kOverfit);
  const auto trained = model_after_running(*setup, std::nullopt, 1);
  RandomStream init(1, "model-init");
  const auto judge = models::make_model(setup->spec().model, setup->data().task, init);
  const NamedTensors weights = trained->selected_weights();
  const auto start = [&] {
    for (auto& [name, value] : judge->state()) value.detach().copy_(find_tensor(weights, name));
  };
  start();
  const at::Tensor made =
      generate_by_class(*judge, setup->dataset().train.x, setup->dataset().train.y, 2, {.steps = 200, .each = 20});
  EXPECT_EQ(made.sizes(), (std::vector<int64_t>{40, 6}));
  start();
  const at::Tensor right = judge->logits(made).argmax(1) == at::arange(2).repeat_interleave(20);
  EXPECT_GT(right.to(at::kDouble).mean().item<double>(), 0.8);
}

TEST(Target, IsARunDirectory) {
  EXPECT_THROW(Target("/nowhere"), UserError);
}

}  // namespace
}  // namespace sotto::attacks

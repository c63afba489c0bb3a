#include "models/pretrain.h"

#include "../support/expect_user_error.h"
#include "base/files.h"
#include "models/weights/weight_store.h"
#include "models/weights/weights.h"
#include "tasks.h"
#include "temp_home.h"

#include <ATen/ATen.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sotto::models {
namespace {

using ::testing::ElementsAre;

PretrainOptions quick(const data::DataOptions& data) {
  PretrainOptions options;
  options.name = "shady";
  options.model = named("mlp");
  options.model.hidden = {8};
  options.data = data;
  options.epochs = 3;
  options.batch = 16;
  options.lr = 0.02;
  return options;
}

const auto nobody = [](const EpochReport&) {};

TEST(Pretrain, LearnsSavesAndIsFoundByName) {
  const TempHome home;
  const auto data = write_dataset(home / "shades.safetensors", dark_and_bright(200, 40));
  std::vector<double> losses;
  const auto result = pretrain(quick(data), [&](const EpochReport& epoch) { losses.push_back(epoch.loss); });
  EXPECT_EQ(losses.size(), 3u);
  EXPECT_LT(losses.back(), losses.front());
  EXPECT_GT(result.card.accuracy, 0.9);
  EXPECT_FALSE(result.interrupted);
  EXPECT_THAT(pretrained_names(), ElementsAre("shady"));

  const Backbone backbone = find_backbone("shady");
  EXPECT_EQ(backbone.model.name, "mlp");
  EXPECT_THAT(backbone.model.hidden, ElementsAre(8));
  EXPECT_EQ(backbone.image_size, 8);
  const NamedTensors saved = read_weights(find_weights("shady"));
  const auto same_classes = make(backbone.model, image_task(1, 8, 2), 5);
  EXPECT_TRUE(find_tensor(same_classes->state(), "head.weight").equal(find_tensor(saved, "head.weight")));
  const auto other_classes = make(backbone.model, image_task(1, 8, 7), 5);
  EXPECT_TRUE(find_tensor(other_classes->state(), "fc1.weight").equal(find_tensor(saved, "fc1.weight")));
}

TEST(Pretrain, SameSeedSameWeights) {
  const TempHome home;
  auto options = quick(write_dataset(home / "shades.safetensors", dark_and_bright(64, 0)));
  options.model.dropout = 0.2;
  options.epochs = 1;
  const auto weights = [&](uint64_t seed) {
    options.seed = seed;
    return read_weights(pretrain(options, nobody).file);
  };
  const auto first = weights(1), second = weights(1), other = weights(2);
  for (size_t i = 0; i < first.size(); ++i) EXPECT_TRUE(first[i].value.equal(second[i].value)) << first[i].name;
  EXPECT_FALSE(first[0].value.equal(other[0].value));
}

TEST(Pretrain, BadOptions) {
  const TempHome home;
  const auto data = write_dataset(home / "shades.safetensors", dark_and_bright(8, 0));
  const auto with = [&](auto edit) {
    auto options = quick(data);
    edit(options);
    pretrain(options, nobody);
  };
  EXPECT_USER_ERROR(with([](auto& o) { o.epochs = 0; }), "epochs");
  EXPECT_USER_ERROR(with([](auto& o) { o.batch = 0; }), "batch");
  EXPECT_USER_ERROR(with([](auto& o) { o.lr = -1.0; }), "learning rate");
  EXPECT_USER_ERROR(with([](auto& o) { o.optimizer = "lion"; }), "adamw or sgd");
  EXPECT_USER_ERROR(with([](auto& o) { o.name = "a/b"; }), "cannot be a name");
  EXPECT_USER_ERROR(with([](auto& o) {
                      o.optimizer = "sgd";
                      o.lr = 1e20;
                      o.batch = 1;
                    }),
                    "not finite");
  EXPECT_FALSE(fs::exists(home / "weights/pretrained/shady.pt")) << "nothing is saved of a failed training";
}

TEST(Pretrain, ADamagedCardSaysSo) {
  const TempHome home;
  make_folder(pretrained_folder());
  write_file_atomically(pretrained_folder() / "x.json", std::string_view("{}"));
  EXPECT_USER_ERROR(find_backbone("x"), "damaged");
  EXPECT_USER_ERROR(find_backbone("y"), "unknown backbone 'y'");
  EXPECT_USER_ERROR(find_weights("minilm"), "sotto data install minilm");
}

}  // namespace
}  // namespace sotto::models

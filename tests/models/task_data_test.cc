#include "models/task_data.h"

#include "../support/expect_user_error.h"
#include "base/files.h"
#include "io/safetensors.h"
#include "models/pretrain.h"
#include "models/weights/weight_store.h"
#include "tasks.h"
#include "temp_home.h"

#include <ATen/ATen.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sotto::models {
namespace {

using ::testing::ElementsAre;

// Files where `sotto data install minilm` would put them.
void install_tokenizer(const TempHome& home) {
  const fs::path folder = home / "weights/minilm/model";
  make_folder(folder);
  io::write_safetensors(folder / "model.safetensors", {{{"unused", at::zeros({1})}}, {}});
  write_file_atomically(folder / "vocab.txt", std::string_view("[PAD]\n[UNK]\n[CLS]\n[SEP]\nhello\nworld\n"));
}

TEST(TaskData, ImagesAreTheTaskAsTheyAre) {
  const TempHome home;
  const auto data = write_dataset(home / "shades.safetensors", dark_and_bright(10, 4));
  const TaskData loaded = load_task_data(data, named("cnn-pac"), 1);
  EXPECT_THAT(loaded.task.record_shape, ElementsAre(1, 8, 8));
  EXPECT_EQ(loaded.task.classes, 2);
  EXPECT_FALSE(loaded.task.tokens);
  EXPECT_EQ(loaded.dataset.train.size(), 10);
}

TEST(TaskData, FeaturesOfSeveralBackbonesAndOfPatches) {
  EXPECT_THAT(backbone_names("resnet50"), ElementsAre("resnet50"));
  EXPECT_THAT(backbone_names("resnet50+mobilenet-v2"), ElementsAre("resnet50", "mobilenet-v2"));
  EXPECT_THAT(backbone_names("clip.pt+patches+minilm"), ElementsAre("clip.pt+patches", "minilm"));
  EXPECT_EQ(find_backbone("resnet50+patches").model.name, "resnet50-keras-patches");
  EXPECT_USER_ERROR(find_backbone("minilm+patches"), "has no patches");
}

TEST(TaskData, TextBecomesTokensOfOneLength) {
  const TempHome home;
  install_tokenizer(home);
  data::Dataset dataset = dark_and_bright(2, 1);
  dataset.kind = data::Kind::kText;
  dataset.train.x = at::Tensor();
  dataset.test.x = at::Tensor();
  dataset.train.texts = {"Hello", "hello world, hello"};
  dataset.test.texts = {""};
  tokenise(dataset, "minilm");
  EXPECT_EQ(dataset.kind, data::Kind::kTokens);
  const auto padded = [](at::Tensor tokens) { return at::constant_pad_nd(tokens, {0, 128 - tokens.size(1)}); };
  EXPECT_TRUE(dataset.train.x.equal(padded(at::tensor({2, 4, 3, 0, 0, 0, 2, 4, 5, 1, 4, 3}, at::kLong).view({2, 6}))));
  EXPECT_TRUE(dataset.test.x.equal(padded(at::tensor({2, 3}, at::kLong).view({1, 2}))));
}

TEST(TaskData, TextNeedsAModelThatReads) {
  const TempHome home;
  write_file_atomically(home / "news.csv", std::string_view("label,content\n1,hello\n2,world\n1,hello world\n2,hi\n"));
  data::DataOptions data;
  data.name = "custom";
  data.path = (home / "news.csv").string();
  install_tokenizer(home);
  EXPECT_USER_ERROR(load_task_data(data, named("mlp"), 1), "is text, which model 'mlp' cannot read");
  const TaskData loaded = load_task_data(data, named("minilm"), 1);
  EXPECT_TRUE(loaded.task.tokens);
  EXPECT_EQ(loaded.task.classes, 2);
  EXPECT_THAT(loaded.task.record_shape, ElementsAre(128));
}

TEST(TaskData, UnknownModelsAndBackbonesAreToldBeforeAnythingIsLoaded) {
  data::DataOptions data;
  data.name = "no-such-dataset";
  EXPECT_USER_ERROR(load_task_data(data, named("cmm"), 1), "unknown model 'cmm'");
  data.features = "no-such-backbone";
  EXPECT_USER_ERROR(load_task_data(data, named("mlp"), 1), "unknown backbone");
}

TEST(TaskDataCache, RunsShareOneCopyUnlessTheirDataDiffer) {
  const TempHome home;
  auto data = write_dataset(home / "shades.safetensors", dark_and_bright(10, 4));
  TaskDataCache cache;
  const TaskData first = cache.load(data, named("cnn-pac"), 1);
  auto dealt_otherwise = data;
  dealt_otherwise.clients = 3;
  dealt_otherwise.partition = "dirichlet";
  const TaskData second = cache.load(dealt_otherwise, named("mlp"), 2);
  EXPECT_TRUE(second.dataset.train.x.is_alias_of(first.dataset.train.x));
  auto fewer = data;
  fewer.limit = 6;
  const TaskData sampled = cache.load(fewer, named("mlp"), 1);
  EXPECT_EQ(sampled.dataset.train.size(), 6);
  EXPECT_FALSE(cache.load(fewer, named("mlp"), 2).dataset.train.x.equal(sampled.dataset.train.x))
      << "a sample goes by the seed";
  EXPECT_EQ(cache.load(data, named("mlp"), 1).dataset.train.size(), 10);
}

TEST(TaskData, FeaturesOfTwoBackbonesStandSideBySide) {
  const TempHome home;
  auto data = write_dataset(home / "shades.safetensors", dark_and_bright(20, 4));
  for (const int64_t width : {6, 3}) {
    PretrainOptions options;
    options.name = fmt::format("wide{}", width);
    options.model = named("mlp");
    options.model.hidden = {width};
    options.data = data;
    options.epochs = 1;
    pretrain(options, [](const EpochReport&) {});
  }
  const auto load = [&](const char* features) {
    data.features = features;
    return load_task_data(data, named("adapter"), 1);
  };
  const TaskData both = load("wide6+wide3");
  EXPECT_THAT(both.feature_blocks, ElementsAre(6, 3));
  EXPECT_THAT(both.task.record_shape, ElementsAre(9));
  EXPECT_TRUE(both.dataset.train.x.narrow(1, 6, 3).equal(load("wide3").dataset.train.x));
  EXPECT_TRUE(both.dataset.test.x.narrow(1, 0, 6).equal(load("wide6").dataset.test.x));
}

}  // namespace
}  // namespace sotto::models

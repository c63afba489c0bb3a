#include "models/task_data.h"

#include "../support/expect_user_error.h"
#include "base/files.h"
#include "base/safetensors.h"
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
  write_safetensors(folder / "model.safetensors", {{{"unused", at::zeros({1})}}, {}});
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
  EXPECT_TRUE(dataset.train.x.equal(at::tensor({2, 4, 3, 0, 0, 0, 2, 4, 5, 1, 4, 3}, at::kLong).view({2, 6})));
  EXPECT_TRUE(dataset.test.x.equal(at::tensor({2, 3, 0, 0, 0, 0}, at::kLong).view({1, 6})));
}

TEST(TaskData, TextNeedsAModelThatReads) {
  const TempHome home;
  write_file_atomically(home / "news.csv", std::string_view("label,content\n1,hello\n2,world\n1,hello world\n2,hi\n"));
  config::DataOptions data;
  data.name = "custom";
  data.path = (home / "news.csv").string();
  install_tokenizer(home);
  EXPECT_USER_ERROR(load_task_data(data, named("mlp"), 1), "is text, which model 'mlp' cannot read");
  const TaskData loaded = load_task_data(data, named("minilm"), 1);
  EXPECT_TRUE(loaded.task.tokens);
  EXPECT_EQ(loaded.task.classes, 2);
  EXPECT_THAT(loaded.task.record_shape, ElementsAre(4));
}

TEST(TaskData, UnknownModelsAndBackbonesAreToldBeforeAnythingIsLoaded) {
  config::DataOptions data;
  data.name = "no-such-dataset";
  EXPECT_USER_ERROR(load_task_data(data, named("cmm"), 1), "unknown model 'cmm'");
  data.features = "no-such-backbone";
  EXPECT_USER_ERROR(load_task_data(data, named("mlp"), 1), "unknown backbone");
}

}  // namespace
}  // namespace sotto::models

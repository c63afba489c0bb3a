#include "models/features.h"

#include "../support/expect_user_error.h"
#include "base/files.h"
#include "base/interrupt.h"
#include "models/pretrain.h"
#include "models/task_data.h"
#include "tasks.h"
#include "temp_home.h"

#include <ATen/ATen.h>

#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <string>

namespace sotto::models {
namespace {

void pretrain_backbone(const data::DataOptions& data, uint64_t seed = 1) {
  PretrainOptions options;
  options.name = "backbone";
  options.model = named("mlp");
  options.model.hidden = {6};
  options.data = data;
  options.epochs = 1;
  options.seed = seed;
  pretrain(options, [](const EpochReport&) {});
}

TEST(Features, ReplaceRecordsAndAreCached) {
  const TempHome home;
  auto data = write_dataset(home / "shades.safetensors", dark_and_bright(50, 9));
  pretrain_backbone(data);
  data.features = "backbone";
  const Features computed = load_features(data, 1);
  EXPECT_FALSE(computed.was_cached);
  EXPECT_EQ(computed.dataset.kind, data::Kind::kFeatures);
  EXPECT_EQ(computed.dataset.train.x.sizes(), at::IntArrayRef({50, 6}));
  EXPECT_EQ(computed.dataset.test.x.sizes(), at::IntArrayRef({9, 6}));

  const Features cached = load_features(data, 1);
  EXPECT_TRUE(cached.was_cached);
  EXPECT_EQ(cached.file, computed.file);
  EXPECT_TRUE(cached.dataset.train.x.equal(computed.dataset.train.x));
  EXPECT_TRUE(cached.dataset.train.y.equal(computed.dataset.train.y));
  EXPECT_EQ(cached.dataset.class_names, computed.dataset.class_names);
}

TEST(Features, OtherRecordsOrWeightsAreComputedAfresh) {
  const TempHome home;
  auto data = write_dataset(home / "shades.safetensors", dark_and_bright(20, 0));
  pretrain_backbone(data);
  data.features = "backbone";
  load_features(data, 1);
  auto other = write_dataset(home / "other.safetensors", dark_and_bright(20, 0, 3));
  other.features = "backbone";
  EXPECT_FALSE(load_features(other, 1).was_cached);
  auto plain = data;
  plain.features.clear();
  pretrain_backbone(plain, 2);
  EXPECT_FALSE(load_features(data, 1).was_cached);
}

TEST(Features, ADamagedCacheIsReplaced) {
  const TempHome home;
  auto data = write_dataset(home / "shades.safetensors", dark_and_bright(20, 0));
  pretrain_backbone(data);
  data.features = "backbone";
  const Features first = load_features(data, 1);
  const at::Tensor expected = first.dataset.train.x.clone();
  write_file_atomically(first.file, std::string_view("rubbish"));
  const Features again = load_features(data, 1);
  EXPECT_FALSE(again.was_cached);
  EXPECT_TRUE(again.dataset.train.x.equal(expected));
}

TEST(Features, FixedOnesNeedNoWeightsAndCanBeJoined) {
  const TempHome home;
  auto data = write_dataset(home / "shades.safetensors", dark_and_bright(20, 4));
  data.image_size = 16;
  data.features = "hog+scatter";
  const TaskData both = load_task_data(data, named("linear"), 1);
  EXPECT_EQ(both.feature_blocks, (std::vector<int64_t>{3 * 3 * 36, 81 * 4 * 4}));
  EXPECT_EQ(both.dataset.test.x.sizes(), at::IntArrayRef({4, 3 * 3 * 36 + 81 * 4 * 4}));
  data.features = "scatter";
  EXPECT_TRUE(load_features(data, 1).was_cached);
  data.image_size = 24;
  EXPECT_FALSE(load_features(data, 1).was_cached);
  data.features = "hogg";
  EXPECT_USER_ERROR(load_features(data, 1), "did you mean 'hog'");
}

// A neighbouring world has one record more, less, or another: those of all others must not move by a bit.
TEST(Features, DependOnTheirRecordAlone) {
  const auto model = make(named("cnn-pac"), image_task(1, 8));
  const auto dataset = dark_and_bright(37, 0);
  const at::Tensor features = compute_features(*model, dataset.train, "test");
  for (const int64_t absent : {0, 20, 36}) {
    data::Records fewer = dataset.train;
    const at::Tensor others = at::arange(37).masked_select(at::arange(37).ne(absent));
    fewer.x = fewer.x.index_select(0, others);
    fewer.y = fewer.y.index_select(0, others);
    EXPECT_TRUE(compute_features(*model, fewer, "test").equal(features.index_select(0, others))) << absent;
  }
}

TEST(Features, OfATextDoNotDependOnLongerOnes) {
  const auto model = make(named("minilm"), token_task(128));
  data::Records texts;
  texts.x = at::zeros({9, 128}, at::kLong);
  texts.y = at::zeros({9}, at::kLong);
  texts.domain = at::zeros({9}, at::kLong);
  for (int64_t i = 0; i < 9; ++i) texts.x[i].narrow(0, 0, 3 + 5 * i).fill_(100 + i);
  const at::Tensor features = compute_features(*model, texts, "test");
  texts.x[8].fill_(7);
  EXPECT_TRUE(compute_features(*model, texts, "test").narrow(0, 0, 8).equal(features.narrow(0, 0, 8)));
}

// Features that say how often they were asked for, until somebody presses Ctrl-C.
class Counting : public Model {
 public:
  explicit Counting(int64_t stops_at) : stops_at_(stops_at) {}
  at::Tensor features(const at::Tensor& x) override {
    if (++asked_ == stops_at_) std::raise(SIGINT);
    return at::full({x.size(0), 2}, 7.0);
  }
  at::Tensor classify(const at::Tensor& features) override { return features; }
  int64_t feature_width() const override { return 2; }
  std::string head_name() const override { return "head"; }
  int64_t asked() const { return asked_; }

 private:
  const int64_t stops_at_;
  std::atomic<int64_t> asked_ = 0;
};

TEST(Features, WhatWasMadeBeforeCtrlCIsKept) {
  const TempHome home;
  const auto dataset = dark_and_bright(800, 0);
  const fs::path partial = home / "features.part";
  const auto stopped = [&] {
    catch_interrupts();
    Counting model(30);
    try {
      compute_features(model, dataset.train, "test", partial);
    } catch (const Interrupted& stop) {
      std::exit(std::string(stop.what()).find("goes on from there") == std::string::npos ? 1 : 0);
    }
    std::exit(2);
  };
  EXPECT_EXIT(stopped(), ::testing::ExitedWithCode(0), "");
  ASSERT_TRUE(fs::exists(partial));
  Counting model(-1);
  const at::Tensor features = compute_features(model, dataset.train, "test", partial);
  EXPECT_TRUE(features.eq(7.0).all().item<bool>());
  EXPECT_LE(model.asked(), dataset.train.size() - 25) << "what was made is not made again";
  EXPECT_FALSE(fs::exists(partial));
}

TEST(Features, TablesHaveNone) {
  const TempHome home;
  data::Dataset table = dark_and_bright(20, 0);
  table.kind = data::Kind::kFeatures;
  table.train.x = table.train.x.flatten(1).to(at::kFloat);
  auto data = write_dataset(home / "table.safetensors", table);
  data.features = "minilm";
  EXPECT_USER_ERROR(load_features(data, 1), "already a table of features");
}

}  // namespace
}  // namespace sotto::models

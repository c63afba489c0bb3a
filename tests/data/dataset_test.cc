#include "data/dataset.h"

#include "../support/expect_user_error.h"
#include "data/record_ops.h"

#include <ATen/ATen.h>

#include <gtest/gtest.h>

#include <limits>

namespace sotto::data {
namespace {

Records images(int64_t count) {
  Records records;
  records.x = at::arange(count * 12, at::kLong).remainder(256).to(at::kByte).view({count, 3, 2, 2});
  records.y = at::arange(count).remainder(3);
  records.domain = at::zeros({count}, at::kLong);
  return records;
}

Dataset image_dataset() {
  Dataset dataset;
  dataset.name = "made";
  dataset.class_names = {"a", "b", "c"};
  dataset.domain_names = {"made"};
  dataset.train = images(30);
  dataset.test = images(6);
  return dataset;
}

Dataset feature_dataset() {
  Dataset dataset = image_dataset();
  dataset.kind = Kind::kFeatures;
  dataset.train.x = at::rand({30, 4});
  dataset.test.x = at::rand({6, 4});
  return dataset;
}

TEST(Gather, ScalesBytesToUnitRange) {
  Records records = images(30);
  records.x.view({-1})[0] = 0;
  records.x.view({-1})[1] = 255;
  Batch batch;
  const at::Tensor indices = at::tensor({0, 29, 7, 7}, at::kLong);
  gather(records, indices, batch);
  EXPECT_EQ(batch.x.sizes(), (at::IntArrayRef{4, 3, 2, 2}));
  EXPECT_FLOAT_EQ(batch.x.view({-1})[0].item<float>(), -1.0F);
  EXPECT_FLOAT_EQ(batch.x.view({-1})[1].item<float>(), 1.0F);
  const at::Tensor expected = records.x.index_select(0, indices).to(at::kFloat) / 127.5 - 1;
  EXPECT_TRUE(at::allclose(batch.x, expected, 0, 1e-6));
  EXPECT_TRUE(at::equal(batch.y, records.y.index_select(0, indices)));
}

TEST(Gather, EveryByteStaysInRangeAndMonotone) {
  Records records;
  records.x = at::arange(256, at::kLong).to(at::kByte).view({1, 1, 16, 16});
  records.y = at::zeros({1}, at::kLong);
  Batch batch;
  gather(records, at::zeros({1}, at::kLong), batch);
  const at::Tensor values = batch.x.flatten();
  EXPECT_GE(values.min().item<float>(), -1.0F);
  EXPECT_LE(values.max().item<float>(), 1.0F);
  EXPECT_TRUE((values.slice(0, 1) > values.slice(0, 0, 255)).all().item<bool>());
}

TEST(Gather, ReusesStorageForSmallerBatches) {
  const Records records = images(30);
  Batch batch;
  gather(records, at::arange(16), batch);
  const void* const storage = batch.x.data_ptr();
  gather(records, at::arange(5), batch);
  EXPECT_EQ(batch.x.size(0), 5);
  EXPECT_EQ(batch.x.data_ptr(), storage);
  gather(records, at::arange(16), batch);
  EXPECT_EQ(batch.x.data_ptr(), storage);
}

TEST(Gather, FeaturesAndTokensStayAsTheyAre) {
  Dataset dataset = feature_dataset();
  Batch batch;
  const at::Tensor indices = at::tensor({3, 1}, at::kLong);
  gather(dataset.train, indices, batch);
  EXPECT_TRUE(at::equal(batch.x, dataset.train.x.index_select(0, indices)));
  dataset.train.x = at::arange(300).view({30, 10});
  gather(dataset.train, indices, batch);
  EXPECT_TRUE(at::equal(batch.x, dataset.train.x.index_select(0, indices)));
}

TEST(GatherDeathTest, AnIndexOutOfRangeIsABug) {
  const Records records = images(3);
  Batch batch;
  EXPECT_DEATH(gather(records, at::tensor({3}, at::kLong), batch), "internal error");
}

TEST(Validate, AcceptsGoodData) {
  validate(image_dataset());
  validate(feature_dataset());
  EXPECT_EQ(image_dataset().record_shape(), (std::vector<int64_t>{3, 2, 2}));
}

TEST(Validate, RefusesLabelsAndDomainsOutOfRange) {
  Dataset dataset = image_dataset();
  dataset.train.y[4] = 3;
  EXPECT_USER_ERROR(validate(dataset), "record 4: label 3");
  dataset = image_dataset();
  dataset.test.y[1] = -1;
  EXPECT_USER_ERROR(validate(dataset), "(test), record 1: label -1");
  dataset = image_dataset();
  dataset.train.domain[2] = 1;
  EXPECT_USER_ERROR(validate(dataset), "record 2: domain 1");
}

TEST(Validate, RefusesSizesThatDisagree) {
  Dataset dataset = image_dataset();
  dataset.train.x = dataset.train.x.slice(0, 0, 29);
  EXPECT_USER_ERROR(validate(dataset), "29 records but 30 labels");
  dataset = image_dataset();
  dataset.test.x = at::zeros({6, 1, 2, 2}, at::kByte);
  EXPECT_USER_ERROR(validate(dataset), "another shape");
  dataset = image_dataset();
  dataset.train = {};
  EXPECT_USER_ERROR(validate(dataset), "no training records");
}

TEST(Validate, RefusesWhatIsNotFinite) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    Dataset dataset = feature_dataset();
    dataset.train.x[5][2] = bad;
    EXPECT_USER_ERROR(validate(dataset), "record 5: feature 2 is not a finite number");
  }
}

TEST(RecordOps, SelectAndConcatKeepRowsTogether) {
  Records records = images(5);
  records.texts = {"a", "b", "c", "d", "e"};
  const Records picked = select_records(records, at::tensor({4, 0}, at::kLong));
  EXPECT_EQ(picked.texts, (std::vector<std::string>{"e", "a"}));
  EXPECT_TRUE(at::equal(picked.x[0], records.x[4]));
  const Records parts[] = {picked, Records(), records};
  const Records joined = concat_records(parts);
  EXPECT_EQ(joined.size(), 7);
  EXPECT_EQ(joined.texts[2], "a");
  EXPECT_TRUE(at::equal(joined.x[2], records.x[0]));
}

}  // namespace
}  // namespace sotto::data

// Axes of public data: what they are, and that clients' records have no say in them.
#include "models/projection.h"

#include "../support/expect_user_error.h"
#include "models/features.h"
#include "models/task_data.h"
#include "tasks.h"
#include "temp_home.h"

#include <ATen/ATen.h>

#include <gtest/gtest.h>

namespace sotto::models {
namespace {

TEST(Projection, FindsTheAxesOfTheLargestVariance) {
  // Along (3, 4)/5 with deviation 10, across it with deviation 1, around (7, -2).
  const at::Tensor along = at::tensor({0.6, 0.8}), across = at::tensor({-0.8, 0.6});
  const at::Tensor a = at::tensor({10.0, -10.0, 10.0, -10.0}).unsqueeze(1);
  const at::Tensor b = at::tensor({1.0, 1.0, -1.0, -1.0}).unsqueeze(1);
  const at::Tensor points = a * along + b * across + at::tensor({7.0, -2.0});
  const Projection projection = fit_projection(points, 1);
  EXPECT_TRUE(at::allclose(projection.mean, at::tensor({7.0, -2.0})));
  EXPECT_TRUE(at::allclose(projection.axes.squeeze(1), along)) << projection.axes;
  EXPECT_TRUE(at::allclose(project(projection, points), a));
}

TEST(Projection, OntoAllAxesIsARotation) {
  at::Generator generator = RandomStream(3, "points").torch_generator();
  const at::Tensor points = at::normal(1.0, 2.0, {50, 6}, generator);
  const at::Tensor laid = project(fit_projection(points, 6), points);
  const at::Tensor centred = points - points.mean(0);
  EXPECT_TRUE(at::allclose(laid.mm(laid.t()), centred.mm(centred.t()), 1e-4, 1e-3));
  const at::Tensor variances = laid.var(0);
  for (int64_t i = 1; i < 6; ++i) EXPECT_GE(variances[i - 1].item<double>(), variances[i].item<double>());
  EXPECT_TRUE(project(fit_projection(points, 0), points).equal(centred));
}

// One product over all rows would add each row up in an order that depends on how many there are.
TEST(Projection, ARowDependsOnNoOther) {
  at::Generator generator = RandomStream(4, "points").torch_generator();
  const at::Tensor points = at::normal(0.0, 1.0, {203, 77}, generator);
  const Projection projection = fit_projection(points, 33);
  const at::Tensor all = project(projection, points);
  for (const int64_t held : {202, 97, 33, 3, 1}) {
    EXPECT_TRUE(project(projection, points.narrow(0, 203 - held, held)).equal(all.narrow(0, 203 - held, held))) << held;
  }
}

TEST(Projection, NeedsMoreRecordsThanAxes) {
  EXPECT_USER_ERROR(fit_projection(at::zeros({5, 3}), 4), "have at most 3 axes");
  EXPECT_USER_ERROR(fit_projection(at::zeros({3, 8}), 3), "have at most 2 axes");
}

TEST(Projection, RandomImagesAreTheSameEachTimeAndUseTheWholeRange) {
  const at::Tensor images = random_images(20, 3, 28, 32);
  EXPECT_EQ(images.sizes(), (std::vector<int64_t>{20, 3, 28, 32}));
  EXPECT_TRUE(images.equal(random_images(20, 3, 28, 32)));
  EXPECT_NEAR(images.to(at::kFloat).mean().item<double>(), 128, 5);
  EXPECT_GT(images.to(at::kFloat).std().item<double>(), 30);
}

class PublicAxes : public ::testing::Test {
 protected:
  PublicAxes() {
    own_ = write_dataset(home_ / "own.safetensors", images(40, 1));
    write_dataset(home_ / "public.safetensors", images(60, 2));
    own_.features = "hog";
  }

  static data::Dataset images(int64_t count, uint64_t seed) {
    data::Dataset dataset = dark_and_bright(count, 6);
    at::Generator generator = RandomStream(seed, "pixels").torch_generator();
    for (data::Records* records : {&dataset.train, &dataset.test}) {
      records->x = at::randint(0, 256, {records->size(), 1, 28, 28}, generator).to(at::kByte);
    }
    return dataset;
  }

  at::Tensor features(const data::DataOptions& data) const {
    return load_task_data(data, named("linear"), 1).dataset.train.x;
  }

  data::DataOptions laid(const std::string& on, int64_t axes) const {
    data::DataOptions options = own_;
    options.project_on = on;
    options.project = axes;
    return options;
  }

  TempHome home_;
  data::DataOptions own_;
};

TEST_F(PublicAxes, AreThoseOfThePublicRecords) {
  const std::string other = (home_ / "public.safetensors").string();
  data::DataOptions known = own_;
  known.path = other;
  const at::Tensor raw = features(own_);
  const Projection expected = fit_projection(features(known), 5);
  EXPECT_TRUE(at::allclose(features(laid(other, 5)), project(expected, raw), 1e-4, 1e-5));
  EXPECT_TRUE(at::allclose(features(laid(other, 0)), raw - expected.mean, 1e-4, 1e-5));
  const TaskData loaded = load_task_data(laid(other, 5), named("linear"), 1);
  EXPECT_EQ(loaded.task.record_shape, std::vector<int64_t>{5});
  EXPECT_EQ(loaded.dataset.test.x.size(1), 5);
}

TEST_F(PublicAxes, DoNotDependOnAnyRecordOfTheClients) {
  data::Dataset changed = images(40, 1);
  changed.train.x[7].fill_(200);
  const data::DataOptions before = laid("random", 5);
  data::DataOptions after = before;
  after.path = write_dataset(home_ / "changed.safetensors", changed).path;
  const at::Tensor differs = features(before).ne(features(after)).any(1);
  EXPECT_EQ(differs.sum().item<int64_t>(), 1);
  EXPECT_TRUE(differs[7].item<bool>());
}

TEST_F(PublicAxes, NeedRecordsOfTheSameWidth) {
  data::Dataset colour = images(20, 3);
  for (data::Records* records : {&colour.train, &colour.test})
    records->x = records->x.expand({-1, 3, 28, 28}).contiguous();
  const std::string file = write_dataset(home_ / "colour.safetensors", colour).path;
  data::DataOptions options = laid(file, 5);
  options.features = "scatter";
  EXPECT_USER_ERROR(features(options), "as many channels");
}

}  // namespace
}  // namespace sotto::models

#include "privacy/dpsgd/views.h"

#include "privacy/dpsgd/noisy_descent.h"
#include "privacy/ledger.h"

#include <ATen/ATen.h>

#include <gtest/gtest.h>

namespace sotto::privacy {
namespace {

TEST(Views, AreTheImageItselfAndMovedOnes) {
  RandomStream stream(1, "views");
  const Views views({.count = 40, .shift = 1, .flip = true}, stream);
  ASSERT_EQ(views.size(), 40U);
  const at::Tensor image = at::arange(12, at::kFloat).reshape({1, 1, 3, 4});
  EXPECT_TRUE(at::equal(views.of(image, 0), image));
  bool moved = false, flipped = false;
  const at::Tensor up = at::tensor({4, 5, 6, 7, 8, 9, 10, 11, 8, 9, 10, 11}, at::kFloat).reshape({1, 1, 3, 4});
  for (size_t i = 0; i < views.size(); ++i) {
    const at::Tensor seen = views.of(image, i);
    ASSERT_EQ(seen.sizes(), image.sizes());
    moved = moved || at::equal(seen, up);
    flipped = flipped || at::equal(seen, image.flip({3}));
  }
  EXPECT_TRUE(moved) << "one row up, the last one twice";
  EXPECT_TRUE(flipped);
}

// What becomes of an image depends on it alone.
TEST(Views, AreTheSameForAllImagesOfAStep) {
  RandomStream stream(2, "views");
  const Views views({.count = 8, .shift = 2, .flip = true}, stream);
  const at::Tensor images = at::rand({5, 3, 8, 8});
  for (size_t i = 0; i < views.size(); ++i) {
    for (int64_t b = 0; b < 5; ++b) {
      EXPECT_TRUE(at::equal(views.of(images, i)[b], views.of(images.narrow(0, b, 1), i)[0]));
    }
  }
}

class DescentWithViews : public ::testing::Test {
 protected:
  DescentWithViews() {
    RandomStream init(1, "init");
    models::ModelOptions options;
    options.name = "cnn";
    model_ = models::make_model(options, {{1, 28, 28}, 3}, init);
    flat_ = models::FlatParameters(*model_);
    start_ = flat_.values().clone();
    at::manual_seed(1);
    records_.x = at::randint(0, 256, {6, 1, 28, 28}, at::kByte);
    records_.y = at::randint(0, 3, {6}, at::kLong);
    records_.domain = at::zeros({6}, at::kLong);
    plan_.records = 6;
    plan_.batch = 6;
    plan_.neighbours.adjacency = Adjacency::kReplace;
    plan_.noise_multiplier = 1e-6;
  }

  // The sum of clipped gradients of one step, with hardly any noise.
  at::Tensor step(const ViewOptions& views, const at::Tensor& indices) {
    flat_.values().copy_(start_);
    Ledger ledger;
    NoisyDescent descent(*model_, flat_);
    descent.average_views(views);
    at::Tensor gradient;
    descent.run(plan_, descent.channel(plan_, "model"), records_, indices, {.ledger = ledger, .round = 1, .seed = 5},
                [&] { gradient = flat_.gradient() * plan_.expected_batch(); });
    return gradient.clone();
  }

  std::shared_ptr<models::Model> model_;
  models::FlatParameters flat_;
  at::Tensor start_;
  data::Records records_;
  DescentPlan plan_;
};

TEST_F(DescentWithViews, ViewsThatAreAllTheSameChangeNothing) {
  plan_.clip = 0.5;
  const at::Tensor indices = at::arange(6, at::kLong);
  const at::Tensor one = step({.count = 1}, indices), several = step({.count = 3, .shift = 0}, indices);
  EXPECT_TRUE(at::allclose(one, several, 1e-3, 1e-4));
  EXPECT_FALSE(at::allclose(one, step({.count = 3, .shift = 2}, indices), 1e-2, 1e-3)) << "others do";
}

// Views are averaged before the bound, not after: the record moves the sum by the bound and no more.
TEST_F(DescentWithViews, ARecordIsBoundedOnce) {
  plan_.clip = 0.01;
  for (const int64_t count : {1, 4}) {
    const double norm = step({.count = count, .shift = 3}, at::arange(1, at::kLong)).norm().item<double>();
    EXPECT_NEAR(norm, plan_.clip, 1e-3 * plan_.clip) << count;
  }
}

}  // namespace
}  // namespace sotto::privacy

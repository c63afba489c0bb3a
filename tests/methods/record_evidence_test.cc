#include "methods/prompts/record_evidence.h"

#include "methods/prompts/prompt_gradients.h"
#include "methods/prompts/prompt_options.h"

#include <ATen/ATen.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace sotto::methods {
namespace {

constexpr int64_t kWidth = 96;  // wide enough for kernels to have several ways to add up
constexpr int64_t kRecords = 41;
constexpr int64_t kClasses = 19;

struct Bench {
  explicit Bench(LocalPrompt local) : learner(make(local)), stream(1, "bench") {
    RandomStream data(2, "data");
    x = at::empty({kRecords, kWidth}).normal_(0.0, 1.0, data.torch_generator());
    y = at::arange(kRecords, at::kLong).remainder(kClasses);
    learner.set(learner.classes().photo_prompt(), learner.first_local(stream));
    learner.begin_step(stream);
  }

  static PromptLearner make(LocalPrompt local) {
    std::vector<std::string> names;
    for (int64_t i = 0; i < kClasses; ++i) names.push_back(fmt::format("class {}", i));
    PromptOptions options;
    options.encoder = "tiny";
    options.length = 5;
    options.shape.local = local;
    options.shape.rank = 2;
    return make_prompt_learner(options, names, kWidth);
  }

  PromptLearner learner;
  RandomStream stream;
  at::Tensor x, y;
};

PromptLearner::Evidence rows_of(const PromptLearner::Evidence& all, const at::Tensor& rows) {
  const auto some = [&](const at::Tensor& value) { return value.defined() ? value.index_select(0, rows) : value; };
  return {.losses = some(all.losses), .errors = some(all.errors), .images = some(all.images)};
}

bool are_same(const PromptLearner::Evidence& a, const PromptLearner::Evidence& b) {
  return a.losses.equal(b.losses) && a.images.equal(b.images) && (!a.errors.defined() || a.errors.equal(b.errors));
}

class RecordEvidence : public testing::TestWithParam<LocalPrompt> {};

TEST_P(RecordEvidence, IsTheSameWhoeverElseIsThere) {
  Bench bench(GetParam());
  privacy::FixedSlots slots(16);
  const auto all = evidence_in_slots(bench.learner, bench.x, bench.y, slots);
  ASSERT_EQ(slots.slots(), 16);
  RandomStream orders(3, "orders");
  for (int64_t count = 0; count <= kRecords; ++count) {
    const at::Tensor rows = at::tensor(orders.permutation(kRecords), at::kLong).narrow(0, 0, count);
    const auto some =
        evidence_in_slots(bench.learner, bench.x.index_select(0, rows), bench.y.index_select(0, rows), slots);
    EXPECT_TRUE(are_same(some, rows_of(all, rows))) << count;
  }
}

TEST_P(RecordEvidence, IsThatOfTheBatchUpToRounding) {
  Bench bench(GetParam());
  privacy::FixedSlots slots(16);
  const auto mine = evidence_in_slots(bench.learner, bench.x, bench.y, slots);
  const auto whole = evidence_of_batch(bench.learner, bench.x, bench.y);
  EXPECT_NEAR(mine.loss(), whole.loss(), 1e-4 * whole.loss());
  EXPECT_TRUE(at::allclose(mine.images, whole.images, 1e-4, 1e-5));
  EXPECT_EQ(mine.errors.defined(), whole.errors.defined());
  if (whole.errors.defined()) {
    EXPECT_TRUE(at::allclose(mine.errors, whole.errors, 1e-4, 1e-5));
  }
}

TEST_P(RecordEvidence, GradientsByThePromptsAreEachRecordsOwn) {
  Bench bench(GetParam());
  privacy::FixedSlots slots(16);
  const auto evidence = evidence_in_slots(bench.learner, bench.x, bench.y, slots);
  const at::Tensor few = at::tensor({30, 2, 17, 5, 40}, at::kLong);
  const NamedTensors all = bench.learner.pull_back_each(evidence);
  for (int64_t count = 0; count <= few.size(0); ++count) {
    const at::Tensor rows = few.narrow(0, 0, count);
    const NamedTensors some = bench.learner.pull_back_each(rows_of(evidence, rows));
    for (size_t i = 0; i < all.size(); ++i) {
      EXPECT_TRUE(some[i].value.equal(all[i].value.index_select(0, rows))) << all[i].name << " of " << count;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Of, RecordEvidence,
                         testing::Values(LocalPrompt::kNone, LocalPrompt::kWhole, LocalPrompt::kFactored,
                                         LocalPrompt::kFactors, LocalPrompt::kAligned));

// Clients without noise keep their results; all others take records in slots.
TEST(SlotsOfPrompts, AreForThoseWhoAddNoise) {
  RunSettings spec;
  spec.federation.batch = 80;
  const PublicFacts facts;
  const PublicContext context{spec, facts};
  PromptTerms terms;
  EXPECT_FALSE(slots_of(context, terms));
  terms.neighbours.adjacency = privacy::Adjacency::kReplace;
  for (const PromptNoise noise : {PromptNoise::kClients, PromptNoise::kServerToo}) {
    terms.noise = noise;
    EXPECT_EQ(slots_of(context, terms)->slots(), 48);
  }
  terms.neighbours.adjacency = privacy::Adjacency::kAddRemove;
  EXPECT_EQ(slots_of(context, terms)->slots(), 32);
}

}  // namespace
}  // namespace sotto::methods

// What one record may change beyond its own share of a sum. Each hole is cut on purpose, and the audit finds it; the
// same without it passes.
#include "audit/case.h"
#include "audit/method_audits.h"
#include "base/random.h"
#include "federation/cohort.h"
#include "models/model.h"
#include "privacy/accounting/gaussian.h"
#include "privacy/channel.h"
#include "privacy/dpsgd/noisy_descent.h"
#include "privacy/guarantee.h"
#include "privacy/ledger.h"

#include <ATen/ATen.h>

#include <gtest/gtest.h>

#include <limits>

namespace sotto::audit {
namespace {

using privacy::Adjacency;

constexpr double kDelta = 1e-5;
constexpr double kEpsilon = 1;
constexpr int64_t kRecords = 32;
constexpr int64_t kDimensions = 4;
constexpr privacy::Neighbours kAddRemove{.adjacency = Adjacency::kAddRemove};
const double kNoise = 1 / privacy::gaussian_mu(kEpsilon, kDelta);

Case gaussian_case(const privacy::Event& event, MakeDraw make_draw) {
  privacy::Tally tally;
  tally.add(event);
  return {.name = "hole",
          .what = "one record is there or not",
          .delta = kDelta,
          .claimed = tally.claimed(kDelta),
          .proven = std::numeric_limits<double>::infinity(),
          .gaussian = true,
          .make_draw = std::move(make_draw)};
}

// ---- what is said of each record, before it is clipped ----

// The record's own numbers; that of number 0 is loud.
at::Tensor numbers(int64_t record) {
  at::Generator generator = RandomStream(1, "numbers", 0, static_cast<uint64_t>(record)).torch_generator();
  const at::Tensor values = at::empty({kDimensions}).normal_(0, 1, generator);
  return record == 0 ? 1000 * values : values;
}

using Records = std::vector<int64_t>;
using Said = std::function<at::Tensor(const Records& records)>;

Records records_in(World world) {
  Records records;
  for (int64_t i = world == World::kWith ? 0 : 1; i < kRecords; ++i) records.push_back(i);
  return records;
}

at::Tensor of_each(const Records& records, const std::function<at::Tensor(int64_t record)>& said) {
  std::vector<at::Tensor> rows;
  for (const int64_t record : records) rows.push_back(said(record));
  return at::stack(rows);
}

at::Tensor mask(RandomStream& stream) {
  at::Tensor kept = at::zeros({kDimensions});
  for (int64_t i = 0; i < kDimensions; ++i) kept[i] = stream.bernoulli(0.5) ? 2.0 : 0.0;
  return kept;
}

// The clipped sum of it with noise for ε = 1.
Outcome audited(const Said& said) {
  const auto bounded = [said](World world) {
    NamedTensors values;
    values.push_back({"vector", said(records_in(world))});
    return privacy::clip_each(privacy::Contribution(std::move(values)), {{"vector", 1, 1.0}}, 1, Adjacency::kAddRemove);
  };
  const auto mechanism = privacy::GroupwiseGaussian::calibrated(kNoise, bounded(World::kWith).groups());
  const auto channel = privacy::Channel::gaussian("audit", privacy::Observer::kServer, mechanism, kAddRemove);
  const Case subject = gaussian_case(channel.terms(), [=]() -> Draw {
    auto ledger = std::make_shared<privacy::Ledger>();
    ledger->rehearse();
    return [=](World world, uint64_t seed) {
      const privacy::ReleaseContext context{.ledger = *ledger, .seed = seed};
      return clone(channel.release(context, [&] { return bounded(world); }).values());
    };
  });
  return audit(subject, {.trials = 2000, .threads = 2});
}

struct Hole {
  std::string name;
  Said cut;
  Said whole;
};

std::vector<Hole> holes() {
  std::vector<Hole> all;
  all.push_back({"masks of dropout in the order of records",
                 [](const Records& records) {
                   RandomStream stream(7, "masks");
                   return of_each(records, [&](int64_t record) { return numbers(record) * mask(stream); });
                 },
                 [](const Records& records) {
                   return of_each(records, [](int64_t record) {
                     RandomStream own(7, "masks", 0, static_cast<uint64_t>(record));
                     return numbers(record) * mask(own);
                   });
                 }});
  all.push_back({"a mean of the batch",
                 [](const Records& records) {
                   const at::Tensor rows = of_each(records, numbers);
                   return rows - rows.mean(0, true);
                 },
                 [](const Records& records) { return of_each(records, numbers); }});
  all.push_back({"a range that is inferred from the records",
                 [](const Records& records) {
                   const at::Tensor rows = of_each(records, numbers);
                   return rows / rows.abs().max();
                 },
                 [](const Records& records) { return of_each(records, numbers).clamp(-3, 3) / 3; }});
  all.push_back({"rates that follow the row",
                 [](const Records& records) {
                   uint64_t row = 0;
                   return of_each(records, [&](int64_t record) {
                     RandomStream own(7, "rate", 0, row++);
                     return numbers(record) * (own.bernoulli(0.5) ? 1.0 : 0.0);
                   });
                 },
                 [](const Records& records) {
                   return of_each(records, [](int64_t record) {
                     RandomStream own(7, "rate", 0, static_cast<uint64_t>(record));
                     return numbers(record) * (record == 0 || own.bernoulli(0.5) ? 1.0 : 0.0);
                   });
                 }});
  // Record 0 has the first step to itself; without it that step is empty.
  all.push_back({"views that only steps with records draw",
                 [](const Records& records) {
                   RandomStream stream(7, "views");
                   const at::Tensor first = records.front() == 0 ? mask(stream) : at::Tensor(), second = mask(stream);
                   return of_each(records, [&](int64_t record) { return numbers(record) * (record ? second : first); });
                 },
                 [](const Records& records) {
                   RandomStream stream(7, "views");
                   const at::Tensor first = mask(stream), second = mask(stream);
                   return of_each(records, [&](int64_t record) { return numbers(record) * (record ? second : first); });
                 }});
  all.push_back({"what is computed depends on how many there are",
                 [](const Records& records) {
                   const bool even = records.size() % 2 == 0;
                   return of_each(records, numbers) * (even ? 1.0 : 1.0 / 3);
                 },
                 [](const Records& records) { return of_each(records, numbers) / 3; }});
  return all;
}

TEST(Holes, AreFoundAndTheSameWithoutThemPasses) {
  for (const Hole& hole : holes()) {
    const Outcome cut = audited(hole.cut), whole = audited(hole.whole);
    EXPECT_EQ(cut.verdict(), Verdict::kRefuted) << hole.name << ": " << cut.epsilon();
    EXPECT_EQ(whole.verdict(), Verdict::kConsistent) << hole.name << ": " << whole.epsilon();
    EXPECT_GT(whole.epsilon(), 0.2 * kEpsilon) << hole.name << ": an audit that sees nothing proves nothing";
  }
}

// ---- DP-SGD that divides by the declared number of records, or by the true one ----

class Descents {
 public:
  explicit Descents(bool declared) : declared_(declared) {
    RandomStream init(1, "init");
    models::ModelOptions options;
    options.name = "logistic";
    model_ = models::make_model(options, {{120}, 5}, init);
    flat_ = models::FlatParameters(*model_);
    start_ = flat_.values().clone();
    records_.x = at::full({kRecords, 120}, std::numeric_limits<float>::quiet_NaN());
    records_.x[0].fill_(1);
    records_.y = at::zeros({kRecords}, at::kLong);
    records_.domain = at::zeros({kRecords}, at::kLong);
  }

  privacy::DescentPlan plan(int64_t held) const {
    privacy::DescentPlan plan;
    plan.records = declared_ ? kRecords : held;
    plan.batch = kRecords;
    plan.clip = 0.5;
    plan.noise_multiplier = kNoise;
    plan.neighbours = kAddRemove;
    return plan;
  }

  privacy::Event terms() { return privacy::NoisyDescent(*model_, flat_).channel(plan(kRecords), "model").terms(); }

  NamedTensors operator()(World world, uint64_t seed) {
    ledger_.rehearse();
    const at::Tensor indices = at::tensor(records_in(world), at::kLong);
    const privacy::DescentPlan own = plan(indices.size(0));
    flat_.values().copy_(start_);
    privacy::NoisyDescent descent(*model_, flat_);
    const auto result = descent.run(own, descent.channel(own, "model"), records_, indices,
                                    {.ledger = ledger_, .seed = seed}, [&] { flat_.values().sub_(flat_.gradient()); });
    return clone(result.release.values());
  }

 private:
  bool declared_;
  std::shared_ptr<models::Model> model_;
  models::FlatParameters flat_;
  at::Tensor start_;
  data::Records records_;
  privacy::Ledger ledger_;
};

Outcome audited_descent(bool declared) {
  Case subject = gaussian_case(Descents(declared).terms(), [=]() -> Draw {
    const auto descents = std::make_shared<Descents>(declared);
    return [=](World world, uint64_t seed) { return (*descents)(world, seed); };
  });
  return audit(subject, {.trials = 2000, .threads = 2});
}

TEST(Holes, ATrueNumberOfRecordsThatScalesTheNoise) {
  const Outcome cut = audited_descent(false), whole = audited_descent(true);
  EXPECT_EQ(cut.verdict(), Verdict::kRefuted) << cut.epsilon();
  EXPECT_EQ(whole.verdict(), Verdict::kConsistent) << whole.epsilon();
  EXPECT_GT(whole.epsilon(), 0.2 * kEpsilon);
}

// Clients that are protected by chance must be chosen by chance: cohorts that follow from the seed are known to whoever
// knows the config. How far an audit gets that knows them: BatchesThatAreNoSecretAreFound.
TEST(Holes, CohortsThatAreCountedOnDoNotFollowFromTheSeed) {
  const auto setup_with = [](const char* noise) {
    return audit_federation(
        fmt::format("[method]\nname = \"dp-fedavg\"\n[federation]\ncohort = 2\nsampling = \"poisson\"\n[privacy]\n"
                    "epsilon = 2\ndelta = 1e-5\nadjacency = \"add-remove\"\nunit = \"client\"\nobserver = "
                    "\"clients\"\nnoise = \"{}\"\n",
                    noise));
  };
  // Whether 40 cohorts are those that an observer computes from the config.
  const auto guessed = [](const federation::Setup& setup) {
    const federation::CohortSchedule schedule(setup.spec());
    for (int64_t round = 1; round <= 40; ++round) {
      if (schedule.cohort(round) != federation::sample_cohort(setup.spec(), round)) return false;
    }
    return true;
  };
  EXPECT_TRUE(guessed(*setup_with("replay"))) << "which is why a replayed run's ε is simulated, not proven";
  EXPECT_FALSE(guessed(*setup_with("secure")));
}

}  // namespace
}  // namespace sotto::audit

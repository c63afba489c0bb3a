#include "audit/mechanisms.h"

#include "base/error.h"
#include "base/text.h"
#include "privacy/accounting/gaussian.h"
#include "privacy/calibration.h"
#include "privacy/channel.h"
#include "privacy/dpsgd/noisy_steps.h"
#include "privacy/ledger.h"
#include "privacy/right_count.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <memory>

namespace sotto::audit {
namespace {

using privacy::Adjacency;
using privacy::Bounded;
using privacy::Contribution;

constexpr double kClip = 1.0;
constexpr const char* kWhat = "audit";
constexpr int64_t kRecords = 8;
constexpr int64_t kTopScores = 8, kTopK = 1;
constexpr double kTopHigh = 0.1;
constexpr privacy::Neighbours kReplace{.adjacency = Adjacency::kReplace};
constexpr privacy::Neighbours kAddRemove{.adjacency = Adjacency::kAddRemove};

// Per-record vectors of which the first is all of `sign`, and longer than the bound allows; the others are zero.
at::Tensor aligned(int64_t dimensions, double sign) {
  at::Tensor rows = at::zeros({kRecords, dimensions});
  rows[0].fill_(100 * sign);
  return rows;
}

double sign_of(World world) {
  return world == World::kWith ? 1.0 : -1.0;
}

// Inputs of a mechanism with one sign and the other: made once, copied for each trial.
class BothWorlds {
 public:
  explicit BothWorlds(const std::function<NamedTensors(double sign)>& make) : with_(make(1)), without_(make(-1)) {}
  NamedTensors operator()(World world) const { return clone(world == World::kWith ? with_ : without_); }

 private:
  NamedTensors with_, without_;
};

// A channel and what it is given in a world.
Case case_of(std::string name, std::string what, const privacy::Channel& channel, double delta,
             std::function<Bounded(World)> bounded) {
  privacy::Tally tally;
  tally.add(channel.terms());
  const MakeDraw draws = [=]() -> Draw {
    auto ledger = std::make_shared<privacy::Ledger>();
    ledger->rehearse();
    return [=](World world, uint64_t seed) {
      const privacy::ReleaseContext context{.ledger = *ledger, .seed = seed};
      return clone(channel.release(context, [&] { return bounded(world); }).values());
    };
  };
  return {.name = std::move(name),
          .what = std::move(what),
          .delta = delta,
          .claimed = tally.claimed(delta),
          .proven = tally.proven(delta),
          .gaussian = channel.terms().mechanism == privacy::kGaussianMechanism,
          .make_draw = draws};
}

privacy::Channel gaussian_channel(privacy::GroupwiseGaussian mechanism) {
  return privacy::Channel::gaussian(kWhat, privacy::Observer::kServer, std::move(mechanism), kReplace);
}

Case gaussian(double epsilon, double delta) {
  constexpr int64_t dimensions = 4;
  const BothWorlds inputs([](double sign) {
    NamedTensors values;
    values.push_back({"vector", aligned(dimensions, sign)});
    return values;
  });
  const auto bounded = [=](World world) {
    return privacy::clip_each(Contribution(inputs(world)), {{"vector", 1, kClip}}, kRecords, Adjacency::kReplace);
  };
  const auto mechanism =
      privacy::GroupwiseGaussian::calibrated(1 / privacy::gaussian_mu(epsilon, delta), bounded(World::kWith).groups());
  return case_of("gaussian", "mean of clipped vectors; one is +Cv or -Cv", gaussian_channel(mechanism), delta, bounded);
}

Case groupwise_gaussian(double epsilon, double delta) {
  const BothWorlds inputs([](double sign) {
    NamedTensors values;
    values.push_back({"small", aligned(2, sign)});
    values.push_back({"large", aligned(6, sign)});
    values.push_back({"scalar", aligned(1, sign).squeeze(1)});
    return values;
  });
  const auto bounded = [=](World world) {
    return privacy::clip_each(Contribution(inputs(world)),
                              {{"small", 1, kClip}, {"large", 1, 3 * kClip}, {"scalar", 1, 0.1 * kClip}}, kRecords,
                              Adjacency::kReplace);
  };
  const auto mechanism = privacy::GroupwiseGaussian::calibrated(1 / privacy::gaussian_mu(epsilon, delta),
                                                                bounded(World::kWith).groups(), {1, 2, 4});
  return case_of("groupwise-gaussian", "three groups, all at their bounds; one record turns round",
                 gaussian_channel(mechanism), delta, bounded);
}

Case whole_gaussian(double epsilon, double delta) {
  const auto bounded = [](World world) {
    NamedTensors values;
    values.push_back({"update", at::full({16}, 100 * sign_of(world))});
    return privacy::clip_whole(Contribution(std::move(values)), {{"update", 1, kClip}}, kReplace);
  };
  const auto mechanism =
      privacy::GroupwiseGaussian::calibrated(1 / privacy::gaussian_mu(epsilon, delta), bounded(World::kWith).groups());
  return case_of("whole-update-gaussian", "a clipped update; one record turns it round", gaussian_channel(mechanism),
                 delta, bounded);
}

Case laplace(double epsilon, double delta) {
  const auto bounded = [](World world) {
    NamedTensors values;
    values.push_back({"number", aligned(1, sign_of(world)).squeeze(1)});
    return privacy::clip_each(Contribution(std::move(values)), {{"number", 1, kClip}}, kRecords, Adjacency::kReplace,
                              privacy::Norm::kL1);
  };
  const privacy::Group group = bounded(World::kWith).groups().front();
  const auto channel = privacy::Channel::laplace(
      kWhat, privacy::Observer::kServer, privacy::LaplaceMechanism(group, group.sensitivity / epsilon), kReplace);
  return case_of("laplace", "mean of clipped numbers; one is +C or -C", channel, delta, bounded);
}

// Which scores are largest by this mechanism, where those that are H are 0 in the other world.
template <typename Mechanism>
Case top_k(std::string name, const Mechanism& mechanism, double delta) {
  constexpr int64_t scores = kTopScores, k = kTopK;
  constexpr double high = kTopHigh;
  const auto bounded = [=](World world) {
    at::Tensor values = at::zeros({scores});
    if (world == World::kWith) values.narrow(0, 0, k).fill_(high);
    if (world == World::kWithout) values.narrow(0, k, scores - k).fill_(high);
    NamedTensors named;
    named.push_back({"scores", values});
    return privacy::clamp_each(Contribution(std::move(named)), high);
  };
  const auto channel = privacy::Channel::top_k(kWhat, privacy::Observer::kServer, mechanism, kReplace);
  Case result = case_of(std::move(name), "which scores are largest; they are 0 or H", channel, delta, bounded);
  // What was chosen, as one number for each score.
  result.make_draw = [inner = result.make_draw]() -> Draw {
    return [draw = inner()](World world, uint64_t seed) {
      NamedTensors seen;
      seen.push_back({"chosen", at::zeros({scores}).index_fill_(0, find_tensor(draw(world, seed), "indices"), 1.0)});
      return seen;
    };
  };
  return result;
}

Case laplace_top_k(double epsilon, double delta) {
  return top_k("laplace-top-k", privacy::LaplaceTopK(kTopScores, kTopHigh, kTopK, epsilon), delta);
}

Case gumbel_top_k(double epsilon, double delta) {
  return top_k("gumbel-top-k", privacy::GumbelTopK(kTopScores, kTopHigh, kTopK, epsilon), delta);
}

Case discrete_gaussian(double epsilon, double delta) {
  constexpr int64_t classes = 3;
  const auto bounded = [](World world) {
    at::Tensor labels = at::ones({kRecords}, at::kLong);
    if (world == World::kWithout) labels = labels.narrow(0, 1, kRecords - 1).contiguous();
    NamedTensors values;
    values.push_back({"labels", labels});
    return privacy::count_each(Contribution(std::move(values)), classes, Adjacency::kAddRemove);
  };
  const privacy::DiscreteGaussian mechanism(bounded(World::kWith).groups().front(),
                                            1 / privacy::gaussian_mu(epsilon, delta));
  const auto channel = privacy::Channel::counts(kWhat, privacy::Observer::kServer, mechanism, kAddRemove);
  return case_of("discrete-gaussian", "class counts; one record is there or not", channel, delta, bounded);
}

// As a federation's clients answer how good the model is: one held-out record more or less is answered right.
Case released_evaluation(double epsilon, double delta) {
  const auto bounded = [](World world) {
    at::Tensor marks = at::ones({kRecords}, at::kLong);
    if (world == World::kWithout) marks[0] = 0;
    NamedTensors values;
    values.push_back({"marks", marks});
    return privacy::count_right(Contribution(std::move(values)));
  };
  const privacy::DiscreteGaussian mechanism(privacy::right_count_group(), 1 / privacy::gaussian_mu(epsilon, delta));
  const auto channel = privacy::Channel::counts(kWhat, privacy::Observer::kServer, mechanism, kReplace);
  return case_of("released-evaluation", "right answers; one record's is right or wrong", channel, delta, bounded);
}

// ---- steps with secret batches, all of which the observer sees ----

constexpr privacy::Neighbours kZeroOut{.adjacency = Adjacency::kZeroOut};
constexpr int64_t kSampledDimensions = 2;

// Clipped sums of batches: the first record's vector is along the diagonal and longer than the bound, or zero; all
// others are zero.
Bounded batch_sum(World world, const at::Tensor& positions) {
  at::Tensor rows = at::zeros({std::max<int64_t>(positions.size(0), 1), kSampledDimensions});
  if (world == World::kWith && positions.eq(0).any().item<bool>()) rows[0].fill_(100);
  NamedTensors values;
  values.push_back({"vector", rows});
  return privacy::clip_each(Contribution(std::move(values)), {{"vector", 1, kClip}}, 1, kZeroOut.adjacency);
}

// ln of how much likelier what was seen is with the record than without it; `seen` are sums along its direction, in
// units of the bound. The most powerful test there is.
double log_likelihood_ratio(const privacy::DescentPlan& plan, const std::vector<double>& seen) {
  const double z = plan.noise_multiplier;
  const auto ratio = [&](double x) { return std::exp((x - 0.5) / (z * z)); };
  double sum = 0;
  if (plan.sampling == privacy::Sampling::kPoisson) {
    for (const double x : seen) sum += std::log1p(plan.rate * (ratio(x) - 1));
    return sum;
  }
  const size_t batches = seen.size() / static_cast<size_t>(plan.epochs);
  for (size_t begin = 0; begin < seen.size(); begin += batches) {
    double mean = 0;
    for (size_t i = begin; i < begin + batches; ++i) mean += ratio(seen[i]) / static_cast<double>(batches);
    sum += std::log(mean);
  }
  return sum;
}

Case steps_case(std::string name, std::string what, privacy::DescentPlan plan, double epsilon, double delta) {
  plan.records = kRecords;
  plan.neighbours = kZeroOut;
  plan.noise_multiplier =
      privacy::noise_multiplier_for(epsilon, delta, plan.touches(), plan.rate, kZeroOut.adjacency, plan.allocation());
  const auto mechanism = privacy::GroupwiseGaussian::calibrated(
      plan.noise_multiplier, batch_sum(World::kWith, at::zeros({1}, at::kLong)).groups());
  const privacy::NoisySteps steps(plan, mechanism);
  const privacy::Channel channel = steps.channel(kWhat, privacy::Observer::kServer);
  const privacy::Event& terms = channel.terms();
  privacy::Tally tally;
  tally.add(terms);
  Case result{.name = std::move(name),
              .what = std::move(what),
              .delta = delta,
              .claimed = tally.claimed(delta),
              .proven = tally.proven(delta)};
  privacy::Step step =
      privacy::Step::gaussian(terms.noise_scale / terms.sensitivity, terms.sampling_rate, terms.neighbours.adjacency);
  step.batches = terms.batches;
  result.family = {{step, terms.steps}};
  result.make_draw = [=]() -> Draw {
    auto ledger = std::make_shared<privacy::Ledger>();
    ledger->rehearse();
    const at::Tensor indices = at::arange(kRecords);
    return [=](World world, uint64_t seed) {
      std::vector<double> seen;
      const auto see = [&](const NamedTensors& noisy) {
        const double sum = noisy.front().value.sum().item<double>();
        seen.push_back(sum / std::sqrt(static_cast<double>(kSampledDimensions)) / kClip);
      };
      steps.run(
          channel, indices, {.ledger = *ledger, .seed = seed},
          [&](const at::Tensor& positions) { return batch_sum(world, positions); }, see, [] { return NamedTensors(); });
      NamedTensors ratio;
      ratio.push_back({"log likelihood ratio", at::full({1}, log_likelihood_ratio(plan, seen), at::kDouble)});
      return ratio;
    };
  };
  return result;
}

Case poisson_steps(double epsilon, double delta) {
  privacy::DescentPlan plan;
  plan.epochs = 2;
  plan.sampling = privacy::Sampling::kPoisson;
  plan.rate = 0.25;
  return steps_case("poisson-steps", "sums of Poisson batches; one record is Cv or blank", plan, epsilon, delta);
}

Case allocated_steps(double epsilon, double delta) {
  privacy::DescentPlan plan;
  plan.batch = kRecords / 4;
  plan.epochs = 2;
  return steps_case("allocated-steps", "sums of batches that records draw; one is Cv or blank", plan, epsilon, delta);
}

}  // namespace

const std::vector<MechanismAudit>& mechanism_audits() {
  static const std::vector<MechanismAudit> audits = {
      {"gaussian", gaussian},
      {"groupwise-gaussian", groupwise_gaussian},
      {"whole-update-gaussian", whole_gaussian},
      {"laplace", laplace},
      {"laplace-top-k", laplace_top_k},
      {"gumbel-top-k", gumbel_top_k},
      {"discrete-gaussian", discrete_gaussian},
      {"released-evaluation", released_evaluation},
      {"poisson-steps", poisson_steps},
      {"allocated-steps", allocated_steps},
  };
  return audits;
}

const MechanismAudit& find_mechanism_audit(const std::string& name) {
  std::vector<std::string> names;
  for (const MechanismAudit& audit : mechanism_audits()) {
    if (audit.name == name) return audit;
    names.push_back(audit.name);
  }
  fail_user("no mechanism is called '{}'{}; there are {}", name, did_you_mean(name, names), join(names, ", "));
}

}  // namespace sotto::audit

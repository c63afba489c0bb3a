#include "federation/released_evaluation.h"

#include "base/error.h"
#include "base/random.h"
#include "federation/client_score.h"
#include "federation/setup.h"
#include "privacy/guarantee.h"
#include "privacy/right_count.h"

#include <ATen/ATen.h>

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <mutex>
#include <tuple>

namespace sotto::federation {
namespace {

constexpr double kLeastMultiplier = 0.05;
constexpr double kMostMultiplier = 1e5;
constexpr double kPrecision = 1.01;  // of the noise that is found

privacy::Channel channel_of(const privacy::PrivacyTerms& terms, double multiplier) {
  return privacy::Channel::counts(kEvaluation, privacy::Observer::kServer,
                                  privacy::DiscreteGaussian(privacy::right_count_group(), multiplier),
                                  terms.neighbours())
      .times(1, "once, after the last round");
}

double calibrate(const privacy::PrivacyTerms& terms, const privacy::Tally& others, double epsilon) {
  const auto fits = [&](double multiplier) {
    privacy::Tally all = others;
    all.add(channel_of(terms, multiplier).terms());
    return all.proven(terms.delta) <= epsilon;
  };
  double low = kLeastMultiplier;
  double high = kMostMultiplier;
  if (!fits(high)) {
    fail_user(
        "serve.evaluation: what the method releases leaves nothing of ε = {:.4g} for it; raise serve.evaluation_share, "
        "or keep evaluation \"local\"",
        epsilon);
  }
  while (high / low > kPrecision) {
    const double middle = std::sqrt(low * high);
    (fits(middle) ? high : low) = middle;
  }
  return high;
}

// Both sides ask often, and the answer takes a while.
double remembered_multiplier(const privacy::PrivacyTerms& terms, const privacy::Tally& others, double epsilon) {
  using Question = std::tuple<privacy::Tally, double, double>;
  static std::mutex mutex;
  static std::map<Question, double> answers;
  const Question question{others, terms.delta, epsilon};
  const std::lock_guard lock(mutex);
  const auto known = answers.find(question);
  if (known != answers.end()) return known->second;
  return answers[question] = calibrate(terms, others, epsilon);
}

// A model that was fitted without noise may change with every training record, and all of its answers with it.
bool may_show_own_model(const methods::RunSettings& settings, const methods::MethodEntry& method) {
  return method.personal(settings) && !method.fits_without_noise(settings);
}

}  // namespace

std::string why_no_evaluation(const methods::RunSettings& settings, const methods::MethodEntry& method) {
  if (!settings.privacy) return "needs [privacy]: its noise follows from ε";
  if (settings.privacy->unit != privacy::Unit::kRecord) return "needs privacy.unit = \"record\"";
  if (settings.privacy->adjacency == privacy::Adjacency::kAddRemove) {
    return "needs an adjacency under which the number of records is public: one more or less would change who is held "
           "out";
  }
  if (settings.privacy->trusts_server()) return "needs privacy.observer = \"server\"";
  if (settings.as_printed()) return "needs a sound variant: a claim of a paper does not cover it";
  if (!may_show_own_model(settings, method) && !method.global(settings)) {
    return fmt::format(
        "is not possible with {}: its models are fitted without noise, and one record may change all of "
        "their answers",
        settings.method);
  }
  return "";
}

privacy::Channel evaluation_channel(const privacy::PrivacyTerms& terms, const methods::ReleasePlan& others,
                                    double epsilon) {
  privacy::Tally tally;
  for (const privacy::Channel& channel : others) {
    if (channel.terms().why_unproven.empty()) tally.add(channel.terms(), channel.times());
  }
  return channel_of(terms, remembered_multiplier(terms, tally, epsilon));
}

privacy::Release release_evaluation(const Setup& setup, int64_t client, methods::ClientMethod& method,
                                    const methods::Broadcast& broadcast, const privacy::PrivateState& state,
                                    const privacy::ReleaseContext& context) {
  const auto& terms = setup.published().evaluation();
  SOTTO_INVARIANT(terms);
  const methods::ReleasePlan plan = setup.plan_for(client);
  SOTTO_INVARIANT(plan.back().terms().what == kEvaluation);
  return plan.back().release(context, [&] {
    const bool own = may_show_own_model(setup.spec(), setup.method());
    method.select(broadcast, own ? state : privacy::PrivateState());
    const HeldOut held_out(setup, {client});
    const at::Tensor rows = setup.partition().shard(client).test;
    RandomStream stream(setup.spec().seed, "released-evaluation");
    const auto chosen = stream.sample_without_replacement(rows.size(0), terms->records);
    const Predictions predictions =
        predict(method, held_out.records, rows.index_select(0, at::tensor(chosen, at::kLong)));
    return privacy::count_right(
        privacy::Contribution({{"marks", predictions.predicted.eq(predictions.truth).to(at::kLong)}}));
  });
}

privacy::UploadShape evaluation_shape() {
  return {.tensors = {{.name = privacy::kRightCount, .sizes = {1}, .dtype = at::kLong}}};
}

int64_t right_count_in(const NamedTensors& values) {
  return find_tensor(values, privacy::kRightCount).item<int64_t>();
}

}  // namespace sotto::federation

#include "methods/noisy_training.h"

#include "base/error.h"
#include "methods/averaging.h"
#include "methods/options.h"
#include "methods/requirements.h"
#include "methods/trainer_client.h"
#include "privacy/calibration.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

namespace sotto::methods {
namespace {

constexpr const char* kModel = "model";

// The same for all clients, from what is public: a rate may not depend on how many records a client has.
double sampling_rate(const MethodContext& context) {
  const double average =
      static_cast<double>(context.data.dataset.train.size()) / static_cast<double>(context.spec.data.clients);
  return std::min(1.0, static_cast<double>(context.spec.federation.batch) / std::max(1.0, average));
}

// A step's bound over the noise's norm: the bound itself cancels out.
double signal_to_noise(const privacy::DescentPlan& plan, int64_t coordinates) {
  const double sensitivity = privacy::sum_sensitivity(1.0, plan.neighbours.adjacency);
  return plan.expected_batch() / (plan.noise_multiplier * sensitivity * std::sqrt(static_cast<double>(coordinates)));
}

// A member of the family under a variant.
struct Member {
  NoisyTraining options;
  bool as_printed = false;
};

Member member_of(const config::RunSpec& spec, NoisyTrainingReader read, PaperVariant paper) {
  Member member{options_of(spec, read)};
  if (spec.variant != "paper" || paper == PaperVariant::kSameAsSound) return member;
  if (paper == PaperVariant::kNone) {
    fail_user("method.variant: '{}' has no paper variant, for no paper prints its formula; set variant = \"sound\"",
              spec.method);
  }
  if (member.options.sampling == privacy::Sampling::kPoisson) {
    fail_user("method.batches: '{}' has disjoint batches in its paper; leave it out, or set variant = \"sound\"",
              spec.method);
  }
  member.as_printed = true;
  return member;
}

// What a client with these facts does in a round.
struct RoundPlan {
  privacy::DescentPlan descent;
  privacy::Claim claim;
};

class Planner {
 public:
  Planner(const MethodContext& context, Member member, int64_t coordinates)
      : context_(context),
        options_(std::move(member.options)),
        as_printed_(member.as_printed),
        privacy_(require_privacy(context.spec, "record")),
        coordinates_(coordinates) {}

  RoundPlan plan(const ClientFacts& client, int64_t round) const {
    RoundPlan result;
    privacy::DescentPlan& plan = result.descent;
    plan.records = client.records;
    plan.batch = context_.spec.federation.batch;
    plan.epochs = context_.spec.federation.local_epochs;
    plan.sampling = options_.sampling;
    if (options_.sampling == privacy::Sampling::kPoisson) plan.rate = sampling_rate(context_);
    plan.quantile = options_.quantile;
    plan.neighbours = privacy::neighbours_of(privacy_);
    if (as_printed_) {
      result.claim = claim_of(client);
      plan.noise_multiplier = result.claim.multiplier / privacy::sum_sensitivity(1.0, plan.neighbours.adjacency);
    } else {
      plan.noise_multiplier = privacy::noise_multiplier_for(
          client.epsilon, privacy_.delta, plan.touches() * std::max<int64_t>(client.participations, 1), plan.rate,
          plan.neighbours.adjacency);
    }
    plan.clip = options_.clip;
    if (options_.bound) {
      plan.clip = options_.bound({client.epsilon, signal_to_noise(plan, coordinates_), round, context_.spec.rounds});
    }
    plan.declared.push_back({kRecordsName, at::scalar_tensor(weight(plan), at::kDouble)});
    return result;
  }

 private:
  // Rényi orders 2 … 64 over the participations; budgets that these orders cannot reach at any noise are met, in the
  // paper's words, by the classical multiplier of a single release.
  privacy::Claim claim_of(const ClientFacts& client) const {
    const int64_t releases = std::max<int64_t>(client.participations, 1);
    const auto renyi = privacy::printed_noise_multiplier(client.epsilon, privacy_.delta, releases);
    if (renyi) return {.by = privacy::kClaimRenyi, .multiplier = *renyi, .steps = 1};
    return {.by = privacy::kClaimRun,
            .multiplier = std::sqrt(2 * std::log(1.25 / privacy_.delta)) / client.epsilon,
            .steps = 1,
            .epsilon = client.epsilon};
  }

  double weight(const privacy::DescentPlan& plan) const {
    if (!options_.weigh_by_noise) return static_cast<double>(plan.records);
    const double step = plan.clip * plan.noise_multiplier / plan.expected_batch();
    return 1.0 / (step * step * static_cast<double>(plan.steps()));
  }

  MethodContext context_;
  NoisyTraining options_;
  bool as_printed_;
  const config::PrivacyOptions& privacy_;
  int64_t coordinates_;
};

class Client : public TrainerClient {
 public:
  Client(const MethodContext& context, Member member)
      : TrainerClient(context),
        context_(context),
        planner_(context, std::move(member), trainer_.flat().gradient().numel()),
        descent_(trainer_.model(), trainer_.flat()) {
    require_no_batch_statistics(trainer_.model());
  }

  StepResult step(const Broadcast& broadcast, const data::Shard& shard, privacy::PrivateState& state,
                  const StepContext& context) override {
    select(broadcast, state);
    const double epsilon = context_.spec.privacy->budget_of(context.release.client);
    RoundPlan plan = planner_.plan({shard.size(), context.release.participations, epsilon}, context.release.round);
    if (plan.descent.quantile) {
      plan.descent.clip = privacy::learnt_bound(*plan.descent.quantile, broadcast.values, plan.descent.clip);
    }
    privacy::Event event = descent_.event(plan.descent, context.release, kModel);
    event.claim = plan.claim;
    privacy::Receipt receipt = context.release.ledger.spend(event, context.release.participations);
    StepResult result;
    trainer_.with_optimizer(context, [&](const std::function<void()>& update) {
      auto trained = descent_.run(plan.descent, std::move(receipt), context_.data.dataset.train, shard.train,
                                  context.release, update);
      result.report = {trained.loss, trained.samples, !all_finite(trained.release.values())};
      if (!result.report.diverged) result.upload = std::move(trained.release);
    });
    if (result.upload) keep_personal(state);
    return result;
  }

 private:
  MethodContext context_;
  Planner planner_;
  privacy::NoisyDescent descent_;
};

ReleasePlan plan(const MethodContext& context, const ClientFacts& client, const Member& member) {
  const auto model = initial_model(context);
  require_no_batch_statistics(*model);
  const models::FlatParameters flat(*model);
  const int64_t coordinates = flat.gradient().numel();
  const RoundPlan first = Planner(context, member, coordinates).plan(client, 1);
  const privacy::DescentPlan& descent = first.descent;
  privacy::Ledger unused;
  const privacy::NoisyDescent noisy(*model, flat);
  privacy::Event event = noisy.event(descent, {.ledger = unused}, kModel);
  event.claim = first.claim;
  const int64_t cohort =
      context.spec.federation.cohort == 0 ? context.spec.data.clients : context.spec.federation.cohort;
  return {{.event = event,
           .how_often = fmt::format("once per participation, after {} noisy steps", descent.steps()),
           .times = client.participations,
           .coordinates = coordinates,
           .bound = descent.clip * descent.expected_batch(),
           .noise_stddev = noisy.noise_stddev(descent),
           .summands = static_cast<double>(cohort * context.spec.rounds * descent.steps())}};
}

}  // namespace

void read_common_options(config::Section& section, NoisyTraining& options) {
  if (section.one_of("batches", "disjoint", {"disjoint", "poisson"}) == "poisson") {
    options.sampling = privacy::Sampling::kPoisson;
  }
  options.weigh_by_noise = section.one_of("weights", "records", {"records", "noise"}) == "noise";
}

MethodEntry noisy_training(std::string name, std::string what, std::string citation, NoisyTrainingReader read,
                           PaperVariant paper) {
  const auto member = [=](const MethodContext& context) { return member_of(context.spec, read, paper); };
  return {.name = std::move(name),
          .what = std::move(what),
          .citation = std::move(citation),
          .read_options = [read](config::Section& section) { read(section); },
          .plan = [member](const MethodContext& context,
                           const ClientFacts& client) { return plan(context, client, member(context)); },
          .personal = [](const config::RunSpec& spec) { return !spec.model.personal.empty(); },
          .global = [](const config::RunSpec& spec) { return spec.model.personal.empty(); },
          .make_client = [member](const MethodContext& context) -> std::unique_ptr<ClientMethod> {
            return std::make_unique<Client>(context, member(context));
          },
          .make_server =
              [member](const MethodContext& context) {
                NamedTensors start = clone(initial_model(context)->shared_parameters());
                const NoisyTraining options = member(context).options;
                if (options.quantile) start.push_back(privacy::first_statistic(*options.quantile, options.clip));
                return make_averaging_server_from(std::move(start));
              }};
}

}  // namespace sotto::methods

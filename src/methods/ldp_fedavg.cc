#include "methods/ldp_fedavg.h"

#include "base/error.h"
#include "methods/averaging.h"
#include "methods/options.h"
#include "methods/requirements.h"
#include "methods/trainer_client.h"
#include "privacy/calibration.h"
#include "privacy/dpsgd/noisy_descent.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace sotto::methods {
namespace {

constexpr const char* kModel = "model";
constexpr const char* kClipName = "clip";

struct Options {
  double clip = 1.0;
  privacy::Sampling sampling = privacy::Sampling::kDisjoint;
  std::optional<privacy::QuantileOptions> quantile;
};

Options read_options(config::Section& section) {
  Options o;
  o.clip = section.number("clip", o.clip, config::kPositive);
  if (section.one_of("batches", "disjoint", {"disjoint", "poisson"}) == "poisson") {
    o.sampling = privacy::Sampling::kPoisson;
  }
  const privacy::QuantileOptions quantile = privacy::read_quantile_options(section);
  if (section.one_of("clipping", "fixed", {"fixed", "adaptive"}) == "adaptive") o.quantile = quantile;
  return o;
}

// The same for all clients, from what is public: a rate may not depend on how many records a client has.
double sampling_rate(const MethodContext& context) {
  const double average =
      static_cast<double>(context.data.dataset.train.size()) / static_cast<double>(context.spec.data.clients);
  return std::min(1.0, static_cast<double>(context.spec.federation.batch) / std::max(1.0, average));
}

privacy::DescentPlan descent_plan(const MethodContext& context, const Options& options, int64_t records,
                                  int64_t participations, double epsilon) {
  const config::PrivacyOptions& privacy = require_privacy(context.spec, "record");
  privacy::DescentPlan plan;
  plan.records = records;
  plan.batch = context.spec.federation.batch;
  plan.epochs = context.spec.federation.local_epochs;
  plan.sampling = options.sampling;
  if (options.sampling == privacy::Sampling::kPoisson) plan.rate = sampling_rate(context);
  plan.clip = options.clip;
  plan.quantile = options.quantile;
  plan.neighbours = privacy::neighbours_of(privacy);
  plan.noise_multiplier =
      privacy::noise_multiplier_for(epsilon, privacy.delta, plan.touches() * std::max<int64_t>(participations, 1),
                                    plan.rate, plan.neighbours.adjacency);
  return plan;
}

class Client : public TrainerClient {
 public:
  explicit Client(const MethodContext& context)
      : TrainerClient(context),
        context_(context),
        options_(options_of(context.spec, read_options)),
        descent_(trainer_.model(), trainer_.flat()) {
    require_no_batch_statistics(trainer_.model());
  }

  StepResult step(const Broadcast& broadcast, const data::Shard& shard, privacy::PrivateState& state,
                  const StepContext& context) override {
    select(broadcast, state);
    privacy::DescentPlan plan = descent_plan(context_, options_, shard.size(), context.release.participations,
                                             context_.spec.privacy->budget_of(context.release.client));
    if (options_.quantile) plan.clip = find_tensor(broadcast.values, kClipName).item<double>();
    privacy::Receipt receipt =
        context.release.ledger.spend(descent_.event(plan, context.release, kModel), context.release.participations);
    StepResult result;
    trainer_.with_optimizer(context, [&](const std::function<void()>& update) {
      auto trained =
          descent_.run(plan, std::move(receipt), context_.data.dataset.train, shard.train, context.release, update);
      result.report = {trained.loss, trained.samples, !all_finite(trained.release.values())};
      if (!result.report.diverged) result.upload = std::move(trained.release);
    });
    if (result.upload) keep_personal(state);
    return result;
  }

 private:
  MethodContext context_;
  Options options_;
  privacy::NoisyDescent descent_;
};

ReleasePlan plan(const MethodContext& context, const ClientFacts& client) {
  const Options options = options_of(context.spec, read_options);
  const config::PrivacyOptions& privacy = require_privacy(context.spec, "record");
  const auto model = initial_model(context);
  require_no_batch_statistics(*model);
  const models::FlatParameters flat(*model);
  const auto descent = descent_plan(context, options, client.records, client.participations, privacy.epsilon);
  privacy::Ledger unused;
  const int64_t cohort =
      context.spec.federation.cohort == 0 ? context.spec.data.clients : context.spec.federation.cohort;
  const privacy::NoisyDescent noisy(*model, flat);
  return {{.event = noisy.event(descent, {.ledger = unused}, kModel),
           .how_often = fmt::format("once per participation, after {} noisy steps", descent.steps()),
           .times = client.participations,
           .coordinates = flat.gradient().numel(),
           .bound = options.clip * descent.expected_batch(),
           .noise_stddev = noisy.noise_stddev(descent),
           .summands = static_cast<double>(cohort * context.spec.rounds * descent.steps())}};
}

}  // namespace

MethodEntry ldp_fedavg() {
  return {.name = "ldp-fedavg",
          .what = "averaging of models that clients trained with DP-SGD: record-level privacy against the server",
          .citation = "Abadi et al., CCS 2016",
          .read_options = [](config::Section& section) { read_options(section); },
          .plan = plan,
          .personal = [](const config::RunSpec& spec) { return !spec.model.personal.empty(); },
          .global = [](const config::RunSpec& spec) { return spec.model.personal.empty(); },
          .make_client = [](const MethodContext& context) -> std::unique_ptr<ClientMethod> {
            return std::make_unique<Client>(context);
          },
          .make_server =
              [](const MethodContext& context) {
                NamedTensors start = clone(initial_model(context)->shared_parameters());
                const Options options = options_of(context.spec, read_options);
                if (options.quantile) start.push_back({kClipName, at::scalar_tensor(options.clip, at::kDouble)});
                return make_averaging_server_from(std::move(start));
              }};
}

}  // namespace sotto::methods

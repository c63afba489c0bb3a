#include "methods/dpsgd/noisy_training.h"

#include "base/error.h"
#include "base/text.h"
#include "methods/dpsgd/layer_chooser.h"
#include "methods/parts/averaging.h"
#include "methods/parts/quantile_options.h"
#include "methods/parts/requirements.h"
#include "methods/parts/trainer_client.h"
#include "privacy/calibration.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace sotto::methods {
namespace {

constexpr const char* kModel = "model";

// The same for all clients, from what is public: a rate may not depend on how many records a client has.
double sampling_rate(const PublicContext& context) {
  return std::min(1.0,
                  static_cast<double>(context.spec.federation.batch) / std::max(1.0, context.facts.average_records));
}

// A step's bound over the noise's norm: the bound itself cancels out.
double signal_to_noise(const privacy::DescentPlan& plan, int64_t coordinates) {
  const double sensitivity = privacy::sum_sensitivity(1.0, plan.neighbours.adjacency);
  return plan.expected_batch() / (plan.noise_multiplier * sensitivity * std::sqrt(static_cast<double>(coordinates)));
}

// Of Σ 1/z² over the participations, relative to equal shares.
double spending_share(const std::function<double(double)>& spending, int64_t participation, int64_t participations) {
  const auto share = [&](int64_t i) {
    return spending((static_cast<double>(i) - 0.5) / static_cast<double>(participations));
  };
  double total = 0;
  for (int64_t i = 1; i <= participations; ++i) total += share(i);
  return share(participation) * static_cast<double>(participations) / total;
}

std::string layer_names(const models::Model& model) {
  std::vector<std::string> names;
  for (const auto& layer : models::trainable_layers(model)) names.push_back(layer.name);
  return join(names, ", ");
}

// A member of the family under a variant.
struct Member {
  NoisyTraining options;
  bool as_printed = false;
};

Member member_of(const RunSettings& spec, const NoisyTraining& training, PaperVariant paper) {
  Member member{training};
  if (member.options.spending && member.options.sampling == privacy::Sampling::kPoisson) {
    fail_user("method.batches: '{}' changes its noise from round to round, which needs batches = \"disjoint\"",
              spec.method);
  }
  if (member.options.layers && spec.federation.weight_decay > 0) {
    fail_user("federation.weight_decay: with '{}' it would move layers that are not trained; set it to 0", spec.method);
  }
  if (!spec.as_printed() || paper == PaperVariant::kSameAsSound) return member;
  if (member.options.sampling != privacy::Sampling::kDisjoint && !member.options.printed_price) {
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
  double weight = 0;  // of the client in the average
};

class Planner {
 public:
  Planner(const PublicContext& context, Member member, int64_t coordinates)
      : context_(context),
        options_(std::move(member.options)),
        as_printed_(member.as_printed),
        privacy_(require_privacy(context.spec, privacy::Unit::kRecord)),
        coordinates_(coordinates) {}

  const NoisyTraining& options() const { return options_; }

  // `participation` from 1; 0 stands for an average one.
  RoundPlan plan(const ClientFacts& client, int64_t round, int64_t participation) const {
    RoundPlan result;
    privacy::DescentPlan& plan = result.descent;
    plan.records = client.records;
    plan.batch = options_.full_batch ? std::max<int64_t>(client.records, 1) : context_.spec.federation.batch;
    plan.normalise = options_.normalise;
    plan.epochs = context_.spec.federation.local_epochs;
    plan.sampling = options_.sampling;
    if (options_.sampling == privacy::Sampling::kPoisson) plan.rate = sampling_rate(context_);
    plan.quantile = options_.quantile;
    plan.neighbours = privacy_.neighbours();
    if (as_printed_ && options_.printed_price) {
      result.claim = {.by = privacy::kClaimRun, .epsilon = client.epsilon};
      options_.printed_price(context_, client, plan);
    } else if (as_printed_) {
      result.claim = claim_of(client);
      plan.noise_multiplier = result.claim.multiplier / privacy::sum_sensitivity(1.0, plan.neighbours.adjacency);
    } else if (options_.price) {
      options_.price(context_, client, plan);
    } else {
      plan.noise_multiplier = privacy::noise_multiplier_for(
          client.epsilon, privacy_.delta, plan.touches() * std::max<int64_t>(client.participations, 1), plan.rate,
          plan.neighbours.adjacency, options_.spending ? 1 : plan.allocation());
    }
    // Exact for Gaussians that are not amplified, an upper bound where they are.
    if (options_.spending && participation > 0) {
      plan.noise_multiplier /= std::sqrt(spending_share(options_.spending, participation, client.participations));
    }
    plan.clip = options_.clip;
    if (options_.bound) {
      plan.clip =
          options_.bound({client.epsilon, signal_to_noise(plan, coordinates_), round, context_.spec.planned_rounds()});
    }
    result.weight = weight(plan);
    return result;
  }

  // Of a client with the declared averages: all clients take the same steps.
  double step_size() const {
    const auto& budgets = privacy_.budgets;
    const double total = std::accumulate(budgets.begin(), budgets.end(), 0.0);
    const ClientFacts average{
        .records = std::max<int64_t>(std::llround(context_.facts.average_records), 1),
        .participations = context_.facts.most_participations,
        .epsilon = budgets.empty() ? privacy_.epsilon : total / static_cast<double>(budgets.size())};
    return options_.step_size(context_, plan(average, 1, 0).descent);
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

  PublicContext context_;
  NoisyTraining options_;
  bool as_printed_;
  const privacy::PrivacyTerms& privacy_;
  int64_t coordinates_;
};

privacy::Channel channel_of(const privacy::NoisyDescent& descent, const RoundPlan& plan, const ClientFacts& client) {
  const int64_t steps = plan.descent.steps();
  return descent.channel(plan.descent, kModel)
      .claiming(plan.claim)
      .declaring(kRecordsName, plan.weight)
      .times(client.participations,
             fmt::format("once per participation, after {} noisy step{}", steps, steps == 1 ? "" : "s"));
}

class Client : public TrainerClient {
 public:
  Client(const ClientContext& context, Member member)
      : TrainerClient(context),
        federation_(context.spec.federation),
        planner_(context, std::move(member), trainer_.flat().gradient().numel()),
        descent_(trainer_.model(), trainer_.flat()) {
    require_separate_records(trainer_.model());
    descent_.average_views(planner_.options().views);
    if (planner_.options().layers) layers_.emplace(context, *planner_.options().layers, trainer_);
    if (planner_.options().step_size) own_step_ = planner_.step_size();
  }

  StepResult step(const Broadcast& broadcast, const data::Shard& shard, privacy::PrivateState& state,
                  const StepContext& context) override {
    select(broadcast, state);
    start_from(broadcast);
    RoundPlan plan = planner_.plan(context.own, context.release.round, context.participation);
    if (layers_ && !layers_->choose(broadcast, state, plan.descent)) return {};
    if (plan.descent.quantile) {
      plan.descent.clip = privacy::learnt_bound(*plan.descent.quantile, broadcast.values, plan.descent.clip);
    }
    const privacy::Channel channel = channel_of(descent_, plan, context.own);
    StepResult result;
    trainer_.with_optimizer(context, [&](const std::function<void()>& optimizer_step) {
      const std::function<void()> own = [&] { trainer_.flat().values().sub_(trainer_.flat().gradient(), own_step_); };
      const auto& update = own_step_ > 0 ? own : optimizer_step;
      auto trained = descent_.run(plan.descent, channel, records_, shard.train, context.release, update);
      result.report = {trained.loss, trained.samples, !all_finite(trained.release.values()), noise_norm(plan.descent)};
      if (!result.report.diverged) result.upload = std::move(trained.release);
    });
    if (result.upload) keep_personal(state, layers_ ? layers_->estimates(result.upload->values()) : NamedTensors());
    return result;
  }

 private:
  void start_from(const Broadcast& broadcast) {
    if (planner_.options().start.empty()) return;
    for (const auto& [name, value] : trainer_.shared()) {
      const at::Tensor sent = find_tensor(broadcast.values, planner_.options().start + name);
      if (sent.defined()) value.detach().copy_(sent);
    }
  }

  // Steps of plain descent add their noise up; others do something to it that has no closed form.
  std::optional<double> noise_norm(const privacy::DescentPlan& plan) const {
    if (own_step_ == 0 && !federation_.plain_descent()) return std::nullopt;
    return (own_step_ > 0 ? own_step_ : federation_.lr) * std::sqrt(static_cast<double>(plan.steps())) *
           descent_.noise_norm(plan);
  }

  const FederationOptions& federation_;
  Planner planner_;
  privacy::NoisyDescent descent_;
  std::optional<LayerChooser> layers_;
  double own_step_ = 0;  // 0: the optimiser of [federation]
};

ReleasePlan plan(const PublicContext& context, const ClientFacts& client, const Member& member) {
  const auto model = initial_model(context);
  require_separate_records(*model);
  if (member.options.views.several() && context.facts.task.record_shape.size() != 3) {
    fail_user("method.views: only images have views, and these records are none; leave it out");
  }
  const models::FlatParameters flat(*model);
  const int64_t coordinates = flat.gradient().numel();
  RoundPlan first = Planner(context, member, coordinates).plan(client, 1, 0);
  privacy::DescentPlan& descent = first.descent;
  const privacy::NoisyDescent noisy(*model, flat);
  if (member.options.layers) {
    LocalTrainer trainer(context);
    if (!LayerChooser(context, *member.options.layers, trainer).choose({}, {}, descent)) {
      fail_user(
          "method: no layer is called as `layers` says and has weights of norm `least_norm`, so nothing would be "
          "trained; there are {}",
          layer_names(*model));
    }
  }
  const int64_t trained = noisy.coordinates(descent);
  return {channel_of(noisy, first, client)
              .reaching({.coordinates = trained,
                         .bound = descent.clip * descent.expected_batch(),
                         .noise_stddev = noisy.noise_norm(descent) * descent.expected_batch() /
                                         std::sqrt(static_cast<double>(trained)),
                         .summands = static_cast<double>(expected_cohort(context.spec) * context.spec.planned_rounds() *
                                                         descent.steps())})};
}

// What the server starts from and averages.
NamedTensors shared_values(const PublicContext& context, const NoisyTraining& options) {
  NamedTensors start = clone(initial_model(context)->shared_parameters());
  if (options.quantile) start.push_back(privacy::first_statistic(*options.quantile, options.clip));
  return start;
}

}  // namespace

std::function<double(double)> read_growth(settings::Section& section, double fallback) {
  const double growth = section.number("growth", fallback, settings::kNonNegative);
  if (growth == 0) return {};
  return [=](double x) { return std::pow(x, growth); };
}

void read_common_options(settings::Section& section, NoisyTraining& options) {
  const std::string batches = section.one_of("batches", "disjoint", {"disjoint", "poisson", "allocated"});
  if (batches == "poisson") options.sampling = privacy::Sampling::kPoisson;
  if (batches == "allocated") options.sampling = privacy::Sampling::kAllocated;
  options.weigh_by_noise = section.one_of("weights", "records", {"records", "noise"}) == "noise";
}

NoisyTraining read_clip_options(settings::Section& section) {
  NoisyTraining options;
  options.clip = section.number("clip", options.clip, settings::kPositive);
  read_common_options(section, options);
  return options;
}

MethodEntry noisy_training(std::string name, std::string what, std::string citation, NoisyTrainingReader read,
                           PaperVariant paper) {
  return noisy_training_within(
      std::move(name), std::move(what), std::move(citation),
      [read](settings::Section& section) { return std::any(read(section)); },
      [](const RunSettings& spec) -> const NoisyTraining& { return spec.options_of<NoisyTraining>(); }, paper);
}

MethodEntry noisy_training_within(std::string name, std::string what, std::string citation,
                                  std::function<std::any(settings::Section&)> read, NoisyTrainingFinder training,
                                  PaperVariant paper) {
  const auto member = [=](const PublicContext& context) {
    return member_of(context.spec, training(context.spec), paper);
  };
  return {
      .name = std::move(name),
      .what = std::move(what),
      .citation = std::move(citation),
      .family = "dp-sgd",
      .units = {privacy::Unit::kRecord},
      .observers = {privacy::Observer::kServer},
      .variants =
          paper == PaperVariant::kNone ? std::vector{Variant::kSound} : std::vector{Variant::kSound, Variant::kPaper},
      .read_options = std::move(read),
      .plan = [member](const PublicContext& context,
                       const ClientFacts& client) { return plan(context, client, member(context)); },
      .personal = [](const RunSettings& spec) { return !spec.model.personal.empty(); },
      .global = [](const RunSettings& spec) { return spec.model.personal.empty(); },
      .make_client = [member](const ClientContext& context) -> std::unique_ptr<ClientMethod> {
        return std::make_unique<Client>(context, member(context));
      },
      .make_server =
          [member](const PublicContext& context) {
            const NoisyTraining options = member(context).options;
            NamedTensors start = shared_values(context, options);
            return options.server ? options.server(std::move(start)) : make_averaging_server_from(std::move(start));
          },
      .broadcast_shape = with_learnt_bound,
      .upload_shape =
          [member](const PublicContext& context, const Broadcast&) {
            const NoisyTraining options = member(context).options;
            // A client that trains some layers sends those.
            privacy::UploadShape shape{.tensors = privacy::shapes_of(shared_values(context, options), !options.layers)};
            shape.tensors.push_back(weight_shape());
            return shape;
          }};
}

}  // namespace sotto::methods

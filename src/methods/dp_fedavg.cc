#include "methods/dp_fedavg.h"

#include "base/error.h"
#include "methods/parts/quantile_options.h"
#include "methods/parts/requirements.h"
#include "methods/parts/trainer_client.h"
#include "privacy/calibration.h"
#include "privacy/mechanisms/banded.h"
#include "privacy/mechanisms/gaussian.h"
#include "privacy/mechanisms/quantile.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace sotto::methods {
namespace {

constexpr const char* kUpdate = "update";
constexpr const char* kModel = "model";

// How the noise of rounds belongs together.
enum class NoiseKind { kIndependent, kBanded };
constexpr auto choices(NoiseKind) {
  return std::to_array<settings::Choice<NoiseKind>>(
      {{NoiseKind::kIndependent, "independent"}, {NoiseKind::kBanded, "banded"}});
}

struct Options {
  NoiseKind noise = NoiseKind::kIndependent;
  int64_t band = 0;  // rounds that share noise; 0: as many as there are between two participations
  double clip = 1.0;
  double server_lr = 1.0;
  std::optional<privacy::QuantileOptions> quantile;

  // The bound of the round that this broadcast begins.
  double clip_of(const Broadcast& broadcast) const {
    return quantile ? find_tensor(broadcast.values, privacy::kLearntBound).item<double>() : clip;
  }
};

Options read_options(settings::Section& section) {
  Options o;
  o.quantile = read_adaptive_clipping(section);
  o.noise = section.choice("noise", o.noise);
  o.band = section.integer("band", o.band, settings::at_least(0));
  const bool is_banded = o.noise == NoiseKind::kBanded;
  section.only_if(is_banded, "band", o.band == 0, "without noise = \"banded\"");
  if (is_banded && o.quantile) {
    section.fail("clipping",
                 "cannot be \"adaptive\" with banded noise, which mixes rounds of one bound; set it to \"fixed\"");
  }
  o.clip = section.number("clip", o.quantile ? 0.1 : o.clip, settings::kPositive);
  o.server_lr = section.number("server_lr", o.server_lr, settings::kPositive);
  return o;
}

// How the noise of a round is drawn and paid for.
struct Terms {
  privacy::Neighbours neighbours;
  double expected_cohort = 0;
  double sampling_rate = 1;
  bool fixed_size = false;  // cohorts are drawn in secret, of one size
  int64_t times = 0;        // releases that a client is part of, at most
  bool everyone = false;    // every client pays for every round; otherwise those of the cohort do
  double noise_multiplier = 0;
  std::optional<privacy::BandedTerms> banded = {};
};

double poisson_noise_multiplier_for(double epsilon, double delta, int64_t steps, double rate,
                                    privacy::Adjacency adjacency) {
  return privacy::noise_multiplier_for(epsilon, delta, steps, rate, adjacency);
}

privacy::BandedTerms banded_terms(const RunSettings& spec, int64_t band) {
  const int64_t separation = least_separation(spec);
  const int64_t longest = std::min(separation, spec.planned_rounds());
  if (longest < 2) {
    fail_user(
        "method.noise = \"banded\" needs rounds between two participations of a client: set federation.sampling = "
        "\"cyclic\", a federation.cohort of at most half of the {} clients, and at least 2 rounds",
        spec.data.clients);
  }
  if (band > longest) {
    fail_user("method.band = {} is more than the {} rounds from one participation of a client to its next; lower it",
              band, longest);
  }
  return {.rounds = spec.planned_rounds(), .separation = separation, .band = band == 0 ? longest : band};
}

Terms terms_of(const PublicContext& context, const Options& options) {
  const RunSettings& spec = context.spec;
  const privacy::PrivacyTerms& privacy = require_privacy(spec, privacy::Unit::kClient);
  Terms terms;
  terms.neighbours = privacy.neighbours();
  const auto clients = static_cast<double>(spec.data.clients);
  terms.expected_cohort = spec.federation.cohort == 0 ? clients : static_cast<double>(spec.federation.cohort);
  const bool all = terms.expected_cohort == clients;
  terms.everyone = all || hides_cohorts(spec.federation.sampling);
  terms.fixed_size = spec.federation.sampling == CohortSampling::kSecret;
  terms.sampling_rate = terms.everyone ? terms.expected_cohort / clients : 1.0;
  terms.times = terms.everyone ? spec.planned_rounds() : context.facts.most_participations;
  if (options.noise == NoiseKind::kBanded) {
    terms.banded = banded_terms(spec, options.band);
    const int64_t separation = terms.banded->separation;
    terms.times = std::min(terms.times, (spec.planned_rounds() + separation - 1) / separation);
  }
  const auto calibrated = terms.fixed_size ? privacy::cohort_noise_multiplier_for : poisson_noise_multiplier_for;
  terms.noise_multiplier =
      calibrated(privacy.least_budget(), privacy.delta, terms.times, terms.sampling_rate, terms.neighbours.adjacency);
  return terms;
}

std::vector<privacy::ClipRule> rules_for(double clip, bool adaptive) {
  std::vector<privacy::ClipRule> rules = {{kUpdate, 1, clip}};
  if (adaptive) rules.push_back(privacy::below_rule());
  return rules;
}

privacy::GroupwiseGaussian mechanism_for(const Options& options, const Terms& terms, double clip, int64_t coordinates) {
  std::vector<privacy::Group> groups = {
      {kUpdate, 1, coordinates, privacy::sum_sensitivity(clip, terms.neighbours.adjacency)}};
  std::vector<double> weights = {1.0};
  if (options.quantile) {
    const privacy::ClipRule rule = privacy::below_rule();
    groups.push_back({rule.name, 1, 1, privacy::sum_sensitivity(rule.bound, terms.neighbours.adjacency)});
    const double share = privacy::below_weight(*options.quantile, terms.noise_multiplier, terms.expected_cohort);
    weights = {1.0 - share, share};
  }
  return privacy::GroupwiseGaussian::calibrated(terms.noise_multiplier, std::move(groups), std::move(weights));
}

std::optional<privacy::BandedGaussian> banded_for(const Options& options, const Terms& terms, int64_t coordinates) {
  if (!terms.banded) return std::nullopt;
  const privacy::Group group = mechanism_for(options, terms, options.clip, coordinates).groups().front();
  return privacy::BandedGaussian(terms.noise_multiplier, group, *terms.banded);
}

privacy::Channel update_channel(const RunSettings& spec, const ClientFacts& client) {
  return privacy::Channel::to_trusted_server(kUpdate, privacy::TrustedServer::declared_by(spec.privacy, spec.method))
      .times(client.participations, "once per participation");
}

// What the server releases.
privacy::Channel model_channel(const Terms& terms, const privacy::GroupwiseGaussian& mechanism, int64_t times) {
  auto channel = privacy::Channel::gaussian(kModel, privacy::Observer::kClients, mechanism, terms.neighbours);
  terms.fixed_size ? channel.of_cohort(terms.sampling_rate) : channel.sampled_at(terms.sampling_rate);
  return channel.times(times, terms.everyone ? "every round" : "every round, for those who take part");
}

privacy::Channel banded_channel(const Terms& terms, const privacy::BandedGaussian& banded, int64_t times) {
  return banded.channel(kModel, privacy::Observer::kClients, terms.neighbours)
      .times(times, "every round, for those who take part");
}

class Client : public TrainerClient {
 public:
  Client(const ClientContext& context, const Options& options)
      : TrainerClient(context),
        spec_(context.spec),
        options_(options),
        neighbours_(require_privacy(context.spec, privacy::Unit::kClient).neighbours()) {
    require_no_batch_statistics(trainer_.model());
  }

  StepResult step(const Broadcast& broadcast, const data::Shard& shard, privacy::PrivateState& state,
                  const StepContext& context) override {
    select(broadcast, state);
    const at::Tensor anchor = trainer_.flat().shared().clone();
    StepResult result;
    result.report = trainer_.train(records_, shard, context);
    if (result.report.diverged) return result;
    keep_personal(state);
    result.upload = update_channel(spec_, context.own).hand_over(context.release, [&] {
      const at::Tensor update = trainer_.flat().shared() - anchor;
      const double clip = options_.clip_of(broadcast);
      NamedTensors values;
      values.push_back({kUpdate, update});
      if (options_.quantile) values.push_back(privacy::below(update.norm().item<double>(), clip));
      return privacy::clip_whole(privacy::Contribution(std::move(values)),
                                 rules_for(clip, options_.quantile.has_value()), neighbours_);
    });
    return result;
  }

 private:
  const RunSettings& spec_;
  Options options_;
  privacy::Neighbours neighbours_;
};

class Server : public ServerMethod {
 public:
  Server(const PublicContext& context, const Options& options)
      : options_(options),
        terms_(terms_of(context, options)),
        model_(initial_model(context)),
        flat_(*model_),
        clip_(options_.clip),
        banded_(banded_for(options_, terms_, flat_.shared().numel())) {
    reset_sum();
  }

  Broadcast open() override { return broadcast(0); }

  void accept(const privacy::Upload& upload) override {
    SOTTO_INVARIANT(upload.trusted() != nullptr);
    sum_->add(*upload.trusted());
  }

  Broadcast aggregate(const RoundContext& context) override {
    const std::optional<privacy::Release> release = release_sum(context);
    if (!release) return broadcast(context.round());
    flat_.shared().add_(find_tensor(release->values(), kUpdate), options_.server_lr / terms_.expected_cohort);
    if (options_.quantile) {
      clip_ = privacy::next_bound(*options_.quantile, clip_, release->values().back().value, terms_.expected_cohort);
      reset_sum();
    }
    return broadcast(context.round());
  }

  NamedTensors state() const override { return banded_ ? banded_->state() : NamedTensors(); }

  void restore(const Broadcast& last, const NamedTensors& state) override {
    if (banded_) banded_->restore(state);
    NamedTensors parameters = model_->shared_parameters();
    for (auto& [name, value] : parameters) value.detach().copy_(find_tensor(last.values, name));
    if (options_.quantile) clip_ = find_tensor(last.values, privacy::kLearntBound).item<double>();
    reset_sum();
  }

 private:
  std::optional<privacy::Release> release_sum(const RoundContext& context) {
    const auto sum = [&] { return sum_->take(); };
    if (banded_) {
      return banded_->release(banded_channel(terms_, *banded_, terms_.times), context.cohort, context.release, sum);
    }
    const auto mechanism = mechanism_for(options_, terms_, clip_, flat_.shared().numel());
    const privacy::Channel channel = model_channel(terms_, mechanism, terms_.times);
    if (terms_.everyone) return channel.release(context.release, sum);
    return channel.release_for(context.cohort, context.release, sum);
  }

  void reset_sum() {
    NamedTensors like;
    like.push_back({kUpdate, flat_.shared()});
    if (options_.quantile) like.push_back(privacy::below(0.0, clip_));
    sum_.emplace(like, mechanism_for(options_, terms_, clip_, flat_.shared().numel()).groups());
  }

  Broadcast broadcast(int64_t round) const {
    Broadcast next{round, clone(model_->shared_parameters())};
    if (options_.quantile) next.values.push_back({privacy::kLearntBound, at::scalar_tensor(clip_, at::kDouble)});
    return next;
  }

  Options options_;
  Terms terms_;
  std::shared_ptr<models::Model> model_;
  models::FlatParameters flat_;
  double clip_;
  std::optional<privacy::BandedGaussian> banded_;
  std::optional<privacy::BoundedSum> sum_;
};

ReleasePlan plan(const PublicContext& context, const ClientFacts& client, const Options& options) {
  const Terms terms = terms_of(context, options);
  const int64_t coordinates = total_elements(initial_model(context)->shared_parameters());
  const auto mechanism = mechanism_for(options, terms, options.clip, coordinates);
  const auto banded = banded_for(options, terms, coordinates);
  const int64_t times = terms.everyone ? terms.times : std::min(terms.times, client.participations);
  privacy::Channel model = banded ? banded_channel(terms, *banded, times) : model_channel(terms, mechanism, times);
  model.reaching({.coordinates = coordinates,
                  .bound = options.clip * terms.expected_cohort,
                  .noise_stddev = banded ? banded->stddev_per_round() : mechanism.noise_stddev(0),
                  .summands = static_cast<double>(context.spec.planned_rounds())});
  return {update_channel(context.spec, client), model};
}

privacy::UploadShape upload_shape(const PublicContext& context, const Broadcast& broadcast, const Options& options) {
  const Terms terms = terms_of(context, options);
  const int64_t coordinates = total_elements(initial_model(context)->shared_parameters());
  const double clip = options.clip_of(broadcast);
  privacy::UploadShape shape{.tensors = {{.name = kUpdate, .sizes = {coordinates}}}};
  if (options.quantile) shape.tensors.push_back(privacy::shapes_of({privacy::below(0.0, clip)}).front());
  shape.trusted = {.groups = mechanism_for(options, terms, clip, coordinates).groups(),
                   .rules = rules_for(clip, options.quantile.has_value())};
  return shape;
}

}  // namespace

MethodEntry dp_fedavg() {
  const auto options = [](const PublicContext& context) { return context.spec.options_of<Options>(); };
  return {.name = "dp-fedavg",
          .what = "a trusted server adds noise to the sum of clipped updates: client-level privacy",
          .citation =
              "McMahan et al., ICLR 2018; adaptive clipping: Andrew et al., NeurIPS 2021; banded noise: "
              "Choquette-Choo et al., NeurIPS 2023",
          .family = "central noise",
          .units = {privacy::Unit::kClient},
          .observers = {privacy::Observer::kClients, privacy::Observer::kPublic},
          .read_options = [](settings::Section& section) { return std::any(read_options(section)); },
          .plan = [options](const PublicContext& context,
                            const ClientFacts& client) { return plan(context, client, options(context)); },
          .personal = [](const RunSettings& spec) { return !spec.model.personal.empty(); },
          .global = [](const RunSettings& spec) { return spec.model.personal.empty(); },
          .make_client = [options](const ClientContext& context) -> std::unique_ptr<ClientMethod> {
            return std::make_unique<Client>(context, options(context));
          },
          .make_server = [options](const PublicContext& context) -> std::unique_ptr<ServerMethod> {
            return std::make_unique<Server>(context, options(context));
          },
          .broadcast_shape = with_learnt_bound,
          .upload_shape =
              [options](const PublicContext& context, const Broadcast& broadcast) {
                return upload_shape(context, broadcast, options(context));
              }};
}

}  // namespace sotto::methods

#include "methods/nbafl.h"

#include "base/error.h"
#include "base/log.h"
#include "methods/parts/averaging.h"
#include "methods/parts/requirements.h"
#include "methods/parts/trainer_client.h"
#include "privacy/calibration.h"
#include "privacy/mechanisms/gaussian.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

namespace sotto::methods {
namespace {

constexpr const char* kUpdate = "update";
constexpr const char* kModel = "model";
constexpr const char* kDownlink = "downlink";

struct Options {
  double clip = 1.0;      // S or C
  int64_t exposures = 0;  // paper: L; 0 = as many as there are rounds
};

Options read_options(settings::Section& section) {
  Options o;
  o.clip = section.number("clip", o.clip, settings::kPositive);
  o.exposures = section.integer("exposures", o.exposures, settings::kNonNegative);
  return o;
}

// What holds for every client of a run.
struct Terms {
  double clip = 0;
  double delta = 0;
  privacy::Neighbours neighbours = {};
  std::optional<PrintedNoise> printed = {};  // the paper variant

  const char* what() const { return printed ? kModel : kUpdate; }
};

Terms terms_of(const PublicContext& context) {
  const RunSettings& spec = context.spec;
  const privacy::PrivacyTerms& privacy = require_privacy(spec, privacy::Unit::kRecord);
  const Options& options = spec.options_of<Options>();
  Terms terms{.clip = options.clip, .delta = privacy.delta, .neighbours = privacy.neighbours()};
  if (!spec.as_printed()) {
    if (options.exposures != 0) {
      fail_user(
          "method.exposures is {}: only the paper counts them, and here every upload does; leave it out, or set "
          "method.variant = \"paper\"",
          options.exposures);
    }
    return terms;
  }
  if (options.exposures > spec.planned_rounds()) {
    fail_user("method.exposures is {}, more than the {} rounds there are", options.exposures, spec.planned_rounds());
  }
  terms.printed = {.clip = options.clip,
                   .delta = privacy.delta,
                   .least_records = std::max<int64_t>(context.facts.least_records, 1),
                   .rounds = spec.planned_rounds(),
                   .exposures = options.exposures == 0 ? spec.planned_rounds() : options.exposures,
                   .cohort = expected_cohort(spec)};
  return terms;
}

// The noise of one client in every round of the run.
privacy::GroupwiseGaussian mechanism_for(const Terms& terms, const ClientFacts& client, int64_t coordinates) {
  const std::vector<privacy::Group> groups = {{terms.what(), 1, coordinates, 2 * terms.clip}};
  if (terms.printed) {
    return privacy::GroupwiseGaussian::with_stddevs(groups, {terms.printed->uplink_stddev(client.epsilon)});
  }
  const double multiplier = privacy::noise_multiplier_for(
      client.epsilon, terms.delta, std::max<int64_t>(client.participations, 1), 1.0, terms.neighbours.adjacency);
  return privacy::GroupwiseGaussian::calibrated(multiplier, groups);
}

privacy::Channel channel_for(const Terms& terms, const ClientFacts& client,
                             const privacy::GroupwiseGaussian& mechanism) {
  privacy::Channel channel =
      privacy::Channel::gaussian(terms.what(), privacy::Observer::kServer, mechanism, terms.neighbours)
          .times(client.participations, "once per participation")
          .declaring(kRecordsName, static_cast<double>(client.records));
  if (terms.printed) channel.claiming({.by = privacy::kClaimRun, .epsilon = client.epsilon});
  return channel;
}

class Client : public TrainerClient {
 public:
  explicit Client(const ClientContext& context) : TrainerClient(context), terms_(terms_of(context)) {
    require_no_batch_statistics(trainer_.model());
  }

  StepResult step(const Broadcast& broadcast, const data::Shard& shard, privacy::PrivateState& state,
                  const StepContext& context) override {
    select(broadcast, state);
    at::Tensor shared = trainer_.flat().shared();
    const auto mechanism = mechanism_for(terms_, context.own, shared.numel());
    StepResult result;
    const auto train = [&] {
      const at::Tensor anchor = shared.clone();
      result.report = trainer_.train(records_, shard, context);
      if (result.report.diverged) {
        warn("round {}, client {}: training diverged; it sends the broadcast back", context.release.round,
             context.release.client);
        shared.copy_(anchor);
        result.report = {};
      } else {
        keep_personal(state);
      }
      NamedTensors values;
      values.push_back({terms_.what(), terms_.printed ? shared.clone() : shared - anchor});
      return privacy::clip_whole(privacy::Contribution(std::move(values)), {{terms_.what(), 1, terms_.clip}},
                                 terms_.neighbours);
    };
    result.upload = channel_for(terms_, context.own, mechanism).release(context.release, train);
    result.report.noise_norm = mechanism.noise_norm();
    return result;
  }

 private:
  Terms terms_;
};

class Server : public ServerMethod {
 public:
  explicit Server(const PublicContext& context)
      : terms_(terms_of(context)), model_(initial_model(context)), flat_(*model_) {
    if (terms_.printed) downlink_ = terms_.printed->downlink_stddev(context.spec.privacy->least_budget());
    sum_ = at::zeros_like(flat_.shared());
  }

  Broadcast open() override { return broadcast(0); }

  void accept(const privacy::Upload& upload) override {
    const double records = find_tensor(upload.values(), kRecordsName).item<double>();
    sum_.add_(find_tensor(upload.values(), terms_.what()), records);
    total_records_ += records;
  }

  Broadcast aggregate(const RoundContext& context) override {
    if (total_records_ > 0) {
      at::Tensor shared = flat_.shared();
      if (terms_.printed) shared.zero_();
      shared.add_(sum_, 1.0 / total_records_);
      if (downlink_ > 0) perturb(shared, context.release);
      sum_.zero_();
      total_records_ = 0;
    }
    return broadcast(context.round());
  }

  void restore(const Broadcast& last, const NamedTensors&) override {
    NamedTensors parameters = model_->shared_parameters();
    for (auto& [name, value] : parameters) value.detach().copy_(find_tensor(last.values, name));
  }

 private:
  // Post-processing of releases; the grid is as fine as that of the up-link.
  void perturb(at::Tensor& shared, const privacy::ReleaseContext& context) const {
    privacy::NoiseSource noise = context.post_processing_noise(kDownlink);
    const std::span<float> values(shared.data_ptr<float>(), static_cast<size_t>(shared.numel()));
    privacy::add_gaussian(values, downlink_, 2 * terms_.clip, noise);
  }

  Broadcast broadcast(int64_t round) const { return {round, clone(model_->shared_parameters())}; }

  Terms terms_;
  std::shared_ptr<models::Model> model_;
  models::FlatParameters flat_;
  double downlink_ = 0;
  at::Tensor sum_;
  double total_records_ = 0;
};

ReleasePlan plan(const PublicContext& context, const ClientFacts& client) {
  const Terms terms = terms_of(context);
  const auto model = initial_model(context);
  require_no_batch_statistics(*model);
  const int64_t coordinates = total_elements(model->shared_parameters());
  const auto mechanism = mechanism_for(terms, client, coordinates);
  privacy::Channel channel = channel_for(terms, client, mechanism);
  privacy::NoiseReach reach{.coordinates = coordinates, .bound = terms.clip, .noise_stddev = mechanism.noise_stddev(0)};
  const auto cohort = static_cast<double>(expected_cohort(context.spec));
  if (!terms.printed) {
    reach.summands = cohort * static_cast<double>(context.spec.planned_rounds());
    return {channel.reaching(reach)};
  }
  // A round's model is the mean of that round's uploads alone; the down-link's noise makes it as loud as fewer would.
  const double downlink = terms.printed->downlink_stddev(context.spec.privacy->least_budget());
  const double variance = std::pow(reach.noise_stddev, 2);
  reach.summands = variance / (variance / cohort + downlink * downlink);
  if (downlink > 0) {
    channel.times(client.participations, fmt::format("{}; the server adds noise of {:.4g} to what it sends back",
                                                     channel.how_often(), downlink));
  }
  return {channel.reaching(reach)};
}

privacy::UploadShape upload_shape(const PublicContext& context, const Broadcast&) {
  const int64_t coordinates = total_elements(initial_model(context)->shared_parameters());
  return {.tensors = {{.name = terms_of(context).what(), .sizes = {coordinates}}, weight_shape()}};
}

double classical_factor(double delta) {
  return std::sqrt(2 * std::log(1.25 / delta));
}

}  // namespace

double PrintedNoise::uplink_stddev(double epsilon) const {
  const double claimed_sensitivity = 2 * clip / static_cast<double>(least_records);
  return classical_factor(delta) * static_cast<double>(exposures) * claimed_sensitivity / epsilon;
}

double PrintedNoise::downlink_stddev(double epsilon) const {
  const auto t = static_cast<double>(rounds);
  const auto l = static_cast<double>(exposures);
  const auto n = static_cast<double>(cohort);
  const double excess = t * t - l * l * n;
  if (!(excess > 0)) return 0;
  return 2 * classical_factor(delta) * clip * std::sqrt(excess) / (static_cast<double>(least_records) * n * epsilon);
}

MethodEntry nbafl() {
  return {.name = "nbafl",
          .what = "noise before aggregation: whole updates are clipped and noised at the clients",
          .citation = "Wei et al., IEEE TIFS 2020",
          .family = "local noise",
          .units = {privacy::Unit::kRecord},
          .observers = {privacy::Observer::kServer},
          .variants = {Variant::kSound, Variant::kPaper},
          .read_options = [](settings::Section& section) { return std::any(read_options(section)); },
          .plan = plan,
          .personal = [](const RunSettings& spec) { return !spec.model.personal.empty(); },
          .global = [](const RunSettings& spec) { return spec.model.personal.empty(); },
          .make_client = [](const ClientContext& context) -> std::unique_ptr<ClientMethod> {
            return std::make_unique<Client>(context);
          },
          .make_server = [](const PublicContext& context) -> std::unique_ptr<ServerMethod> {
            return std::make_unique<Server>(context);
          },
          .upload_shape = upload_shape};
}

}  // namespace sotto::methods

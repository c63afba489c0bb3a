#include "methods/dpsgd/noisy_model.h"

#include "base/error.h"
#include "base/log.h"
#include "methods/dpsgd/noisy_training.h"
#include "methods/parts/averaging.h"
#include "methods/parts/requirements.h"
#include "methods/parts/softmax_kl.h"
#include "methods/parts/trainer_client.h"
#include "models/layer_parameters.h"
#include "privacy/mechanisms/gaussian.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace sotto::methods {
namespace {

constexpr const char* kModel = "model";
// What a round measures besides.
constexpr const char* kSequential = "sequential_budget";
constexpr const char* kAtFloor = "layers_at_kl_least";

void require_plain_descent(const RunSettings& spec) {
  const FederationOptions& federation = spec.federation;
  if (federation.plain_descent()) return;
  fail_user(
      "federation: the paper variant of '{}' bounds what a step of plain descent can move; use optimizer = \"sgd\" "
      "without momentum and weight_decay",
      spec.method);
}

// How one client's upload is bounded and noised.
class Planner {
 public:
  Planner(const PublicContext& context, const NoisyModel& options)
      : spec_(context.spec), options_(options), privacy_(require_privacy(context.spec, privacy::Unit::kRecord)) {
    require_plain_descent(spec_);
  }

  // Standard deviation at P_j = B, or whatever was reported. `participation` from 1; 0 stands for the first noise.
  double stddev(const ClientFacts& client, int64_t coordinates, int64_t participation) const {
    if (options_.reported_norm > 0) return options_.reported_norm / std::sqrt(static_cast<double>(coordinates));
    const double all = static_cast<double>(std::max<int64_t>(client.participations, 1));
    const double passed = participation > 0 ? (static_cast<double>(participation) - 0.5) / all : 0;
    return options_.constant(client.epsilon, privacy_.delta) * sensitivity() / client.epsilon *
           std::pow(options_.decay, passed);
  }

  double sensitivity() const {
    return printed_sensitivity(spec_.federation.lr, spec_.federation.local_epochs, options_.batch_clip);
  }

  // What the paper adds up for an upload whose least noise this is.
  double budget(double stddev, int64_t records) const {
    const double share =
        static_cast<double>(spec_.federation.batch) / static_cast<double>(std::max<int64_t>(records, 1));
    return sequential_budget(stddev, sensitivity(), privacy_.delta, std::min(1.0, share));
  }

  // Every step moves the model by at most ηG_c.
  double update_bound(int64_t records) const {
    const int64_t batches = (records + spec_.federation.batch - 1) / spec_.federation.batch;
    return spec_.federation.lr * options_.batch_clip *
           static_cast<double>(std::max<int64_t>(batches, 1) * spec_.federation.local_epochs);
  }

  // One noise for all weights, which does not depend on them.
  bool uniform() const { return options_.reported_norm > 0 || (!options_.estimate && options_.least_norm == 0); }

  std::string why_unproven() const {
    if (uniform()) return "";
    if (options_.least_norm == 0) return "how much noise a layer gets is computed from private weights";
    return options_.estimate ? "layers of small weights are sent without noise, and the others' noise is computed from "
                               "private weights"
                             : "layers of small weights are sent without noise";
  }

  privacy::Channel channel(const privacy::GroupwiseGaussian& mechanism, const ClientFacts& client) const {
    privacy::Channel channel =
        privacy::Channel::gaussian(kModel, privacy::Observer::kServer, mechanism, privacy_.neighbours())
            .claiming({.by = privacy::kClaimRun, .epsilon = client.epsilon})
            .times(client.participations, "once per participation")
            .declaring(kRecordsName, static_cast<double>(client.records));
    if (const std::string why = why_unproven(); !why.empty()) channel.unproven(why);
    return channel;
  }

  const NoisyModel& options() const { return options_; }
  const privacy::PrivacyTerms& privacy() const { return privacy_; }

 private:
  const RunSettings& spec_;
  NoisyModel options_;
  const privacy::PrivacyTerms& privacy_;
};

// A layer before and after training.
struct LayerPair {
  at::Tensor global, local;  // flat
};

class Client : public TrainerClient {
 public:
  Client(const ClientContext& context, const NoisyModel& options)
      : TrainerClient(context), planner_(context, options), layers_(models::trainable_layers(trainer_.model())) {
    require_no_batch_statistics(trainer_.model());
    layers_.resize(shared_layers());
  }

  StepResult step(const Broadcast& broadcast, const data::Shard& shard, privacy::PrivateState& state,
                  const StepContext& context) override {
    select(broadcast, state);
    const at::Tensor anchor = trainer_.flat().shared().clone();
    StepResult result;
    result.report = trainer_.train(records_, shard, context, [&](const models::FlatParameters& flat) { clip(flat); });
    if (result.report.diverged) {
      warn("round {}, client {}: training diverged; it sends the broadcast back", context.release.round,
           context.release.client);
      trainer_.flat().shared().copy_(anchor);
      result.report = {};
    }

    // As printed, how much noise there is follows from the trained weights: the price is known only now.
    const double bound = planner_.update_bound(context.own.records);
    const std::vector<double> noise = stddevs(anchor, context);
    const privacy::GroupwiseGaussian mechanism = privacy::GroupwiseGaussian::with_stddevs(groups(2 * bound), noise);
    const auto clipped_update = [&] {
      return privacy::clip_whole(privacy::Contribution(update(anchor)), rules(bound), planner_.privacy().neighbours());
    };
    result.report.noise_norm = mechanism.noise_norm();
    const double least = planner_.uniform() ? mechanism.noise_norm() / std::sqrt(static_cast<double>(anchor.numel()))
                                            : *std::min_element(noise.begin(), noise.end());
    result.report.measures[kSequential] = planner_.budget(least, context.own.records);
    if (planner_.options().estimate) result.report.measures[kAtFloor] = static_cast<double>(floored_);
    result.upload = planner_.channel(mechanism, context.own).release(context.release, clipped_update);
    keep_personal(state);
    return result;
  }

 private:
  size_t shared_layers() const {
    const int64_t shared = trainer_.flat().shared().numel();
    size_t count = 0;
    for (int64_t coordinates = 0; coordinates < shared; ++count) coordinates += layers_[count].coordinates();
    return count;
  }

  void clip(const models::FlatParameters& flat) const {
    const double norm = flat.gradient().norm().item<double>();
    if (norm > planner_.options().batch_clip) flat.gradient().mul_(planner_.options().batch_clip / norm);
  }

  std::vector<double> stddevs(const at::Tensor& anchor, const StepContext& context) {
    const NoisyModel& options = planner_.options();
    const double base = planner_.stddev(context.own, anchor.numel(), context.participation);
    floored_ = 0;
    if (planner_.uniform()) return {base};
    std::vector<double> all;
    int64_t offset = 0;
    for (const auto& layer : layers_) {
      const LayerPair pair = {anchor.narrow(0, offset, layer.coordinates()),
                              trainer_.flat().shared().narrow(0, offset, layer.coordinates())};
      offset += layer.coordinates();
      if (pair.local.norm().item<double>() < options.least_norm) {
        all.push_back(0);
        continue;
      }
      const double divergence = options.estimate ? softmax_kl(pair.local, pair.global) : options.kl_bound;
      const double estimate = std::clamp(divergence, options.kl_least, options.kl_bound);
      if (divergence < options.kl_least) ++floored_;
      all.push_back(base * options.kl_bound / estimate);
    }
    return all;
  }

  std::vector<privacy::Group> groups(double sensitivity) const {
    std::vector<privacy::Group> all;
    for (const privacy::ClipRule& rule : rules(0)) {
      all.push_back({rule.name, rule.tensors, 0, sensitivity});
    }
    if (planner_.uniform()) {
      all.front().coordinates = trainer_.flat().shared().numel();
      return all;
    }
    for (size_t i = 0; i < all.size(); ++i) all[i].coordinates = layers_[i].coordinates();
    return all;
  }

  std::vector<privacy::ClipRule> rules(double bound) const {
    std::vector<privacy::ClipRule> all;
    for (const auto& layer : layers_) {
      all.push_back({layer.name, static_cast<int64_t>(layer.parameters.size()), bound});
    }
    if (!planner_.uniform()) return all;
    int64_t tensors = 0;
    for (const privacy::ClipRule& rule : all) tensors += rule.tensors;
    return {{kModel, tensors, bound}};
  }

  NamedTensors update(const at::Tensor& anchor) const {
    NamedTensors values;
    int64_t offset = 0;
    for (const auto& layer : layers_) {
      for (const auto& [name, value] : layer.parameters) {
        values.push_back({name, value.detach() - anchor.narrow(0, offset, value.numel()).view(value.sizes())});
        offset += value.numel();
      }
    }
    return values;
  }

  Planner planner_;
  std::vector<models::LayerParameters> layers_;  // the shared ones
  int64_t floored_ = 0;                          // layers whose P_j was below kl_least in the step that was made last
};

ReleasePlan plan(const PublicContext& context, const ClientFacts& client, const NoisyModel& options) {
  const Planner planner(context, options);
  const auto model = initial_model(context);
  require_no_batch_statistics(*model);
  const int64_t coordinates = total_elements(model->shared_parameters());
  const double bound = planner.update_bound(client.records);
  // The noise at P_j = B: what more there will be is not known before.
  const auto mechanism = privacy::GroupwiseGaussian::with_stddevs({{kModel, 1, coordinates, 2 * bound}},
                                                                  {planner.stddev(client, coordinates, 0)});
  return {
      planner.channel(mechanism, client)
          .reaching({.coordinates = coordinates,
                     .bound = bound,
                     .noise_stddev = mechanism.noise_stddev(0),
                     .summands = static_cast<double>(expected_cohort(context.spec) * context.spec.planned_rounds())})};
}

}  // namespace

double printed_sensitivity(double lr, int64_t epochs, double batch_clip) {
  return 2 * lr * static_cast<double>(epochs) * batch_clip;
}

double ladp_constant(double epsilon, double delta) {
  const double logarithm = std::log(2 / (std::numbers::pi * delta * delta));
  if (logarithm >= 4) return (std::sqrt(logarithm) + std::sqrt(logarithm + 8 * epsilon)) / 4;
  return (1 + std::sqrt(1 + 2 * epsilon)) / 2;
}

double classical_constant(double, double delta) {
  return std::sqrt(2 * std::log(1.25 / delta));
}

double sequential_budget(double noise_stddev, double sensitivity, double delta, double batch_share) {
  return batch_share * classical_constant(0, delta) * sensitivity / noise_stddev;
}

NoisyModel read_noisy_model(settings::Section& section) {
  NoisyModel o;
  o.batch_clip = section.number("batch_clip", o.batch_clip, settings::kPositive);
  o.reported_norm = section.number("reported_norm", o.reported_norm, settings::kNonNegative);
  return o;
}

MethodEntry with_noisy_model(MethodEntry sound, NoisyModelReader read) {
  const auto printed = [](const PublicContext& context) { return context.spec.as_printed(); };
  const auto options = [](const PublicContext& context) { return *context.spec.options_of<NoisyTraining>().printed; };
  MethodEntry entry = sound;
  entry.variants = {Variant::kSound, Variant::kPaper};
  entry.read_options = [sound, read](settings::Section& section) {
    auto both = std::any_cast<NoisyTraining>(sound.read_options(section));
    both.printed = read(section);
    return std::any(std::move(both));
  };
  entry.plan = [=](const PublicContext& context, const ClientFacts& client) {
    if (printed(context)) return plan(context, client, options(context));
    if (options(context).reported_norm > 0) {
      fail_user("method.reported_norm: only a paper's noise is reported; leave it out, or set variant = \"paper\"");
    }
    return sound.plan(context, client);
  };
  entry.make_client = [=](const ClientContext& context) -> std::unique_ptr<ClientMethod> {
    if (printed(context)) return std::make_unique<Client>(context, options(context));
    return sound.make_client(context);
  };
  entry.make_server = [=](const PublicContext& context) {
    if (printed(context)) return make_updating_server_from(clone(initial_model(context)->shared_parameters()));
    return sound.make_server(context);
  };
  entry.upload_shape = [=](const PublicContext& context, const Broadcast& broadcast) {
    if (printed(context)) return averaging_shape(initial_model(context)->shared_parameters());
    return sound.upload_shape(context, broadcast);
  };
  return entry;
}

}  // namespace sotto::methods

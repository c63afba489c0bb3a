#include "privacy/channel.h"

#include "base/error.h"
#include "privacy/access.h"
#include "privacy/ledger.h"

#include <ATen/ATen.h>

#include <nlohmann/json.hpp>

namespace sotto::privacy {

Channel::Channel(std::string what, Observer observer, Event terms, Mechanism mechanism)
    : terms_(std::move(terms)), mechanism_(std::move(mechanism)) {
  terms_.what = std::move(what);
  terms_.observer = settings::word(observer);
}

Channel Channel::in_the_clear(std::string what, std::string reason) {
  SOTTO_INVARIANT(!reason.empty());  // without one, the ledger would count nothing
  return {std::move(what), Observer::kServer, {.mechanism = kClearMechanism, .why_unproven = std::move(reason)}, {}};
}

Channel Channel::to_trusted_server(std::string what, const TrustedServer&) {
  return {std::move(what), Observer::kServer, {.mechanism = kTrustedMechanism, .why_unproven = kTrustedReason}, {}};
}

Channel Channel::gaussian(std::string what, Observer observer, GroupwiseGaussian mechanism,
                          const Neighbours& neighbours, const StepCount& steps) {
  Event terms = mechanism.event(neighbours, steps.touches, steps.draws);
  return {std::move(what), observer, std::move(terms), std::move(mechanism)};
}

Channel Channel::laplace(std::string what, Observer observer, LaplaceMechanism mechanism,
                         const Neighbours& neighbours) {
  Event terms = mechanism.event(neighbours);
  return {std::move(what), observer, std::move(terms), std::move(mechanism)};
}

Channel Channel::top_k(std::string what, Observer observer, LaplaceTopK mechanism, const Neighbours& neighbours) {
  return {std::move(what), observer, mechanism.event(neighbours), mechanism};
}

Channel Channel::top_k(std::string what, Observer observer, GumbelTopK mechanism, const Neighbours& neighbours) {
  return {std::move(what), observer, mechanism.event(neighbours), mechanism};
}

Channel Channel::counts(std::string what, Observer observer, DiscreteGaussian mechanism, const Neighbours& neighbours) {
  Event terms = mechanism.event(neighbours);
  return {std::move(what), observer, std::move(terms), std::move(mechanism)};
}

Channel& Channel::times(int64_t count, std::string how_often) {
  times_ = count;
  how_often_ = std::move(how_often);
  return *this;
}

Channel& Channel::claiming(Claim claim) {
  terms_.claim = std::move(claim);
  return *this;
}

Channel& Channel::unproven(std::string why) {
  if (!why.empty()) terms_.why_unproven = std::move(why);  // what is unproven stays so
  return *this;
}

Channel& Channel::sampled_at(double rate) {
  terms_.sampling_rate = rate;
  return *this;
}

Channel& Channel::of_cohort(double share) {
  SOTTO_INVARIANT(terms_.mechanism == kGaussianMechanism);
  if (share < 1) terms_.mechanism = kCohortGaussianMechanism;
  return sampled_at(share);
}

Channel& Channel::allocated_to(int64_t batches) {
  terms_.batches = batches;
  return *this;
}

Channel& Channel::declaring(std::string name, double value) {
  nlohmann::json parameters = nlohmann::json::parse(terms_.parameters);
  parameters["declared"][name] = value;
  terms_.parameters = parameters.dump();
  declared_.emplace_back(std::move(name), value);
  return *this;
}

Channel& Channel::noting(const std::string& key, const std::vector<double>& values) {
  nlohmann::json parameters = nlohmann::json::parse(terms_.parameters);
  parameters[key] = values;
  terms_.parameters = parameters.dump();
  return *this;
}

Channel& Channel::reaching(const NoiseReach& reach) {
  reach_ = reach;
  return *this;
}

bool Channel::makes(const Event& event) const {
  return terms_.what == event.what && terms_.observer == event.observer && terms_.mechanism == event.mechanism &&
         terms_.why_unproven == event.why_unproven;
}

Receipt Channel::pay(const ReleaseContext& context) const {
  Event event = terms_;
  event.round = context.round;
  event.client = context.client;
  if (event.why_unproven.empty()) event.why_unproven = context.why_unproven;
  const bool noised = terms_.mechanism != kClearMechanism && terms_.mechanism != kTrustedMechanism;
  if (noised) event.generator = settings::word(context.generator);
  return context.ledger.spend(event, times_);
}

void Channel::append_declared(NamedTensors& values) const {
  for (const auto& [name, value] : declared_) values.push_back({name, at::scalar_tensor(value, at::kDouble)});
}

Release Channel::randomise(Receipt receipt, const ReleaseContext& context,
                           const std::function<Bounded()>& compute) const {
  Bounded bounded = compute();
  NoiseSource noise = context.noise_source(receipt, terms_.what);
  Release release = std::visit(
      [&](const auto& mechanism) -> Release {
        if constexpr (std::is_same_v<std::decay_t<decltype(mechanism)>, std::monostate>) {
          internal_bug("a channel without noise is not randomised", __FILE__, __LINE__);
        } else {
          return mechanism.randomise(std::move(bounded), std::move(receipt), noise);
        }
      },
      mechanism_);
  append_declared(Access::values(release));
  return release;
}

Release Channel::release(const ReleaseContext& context, const std::function<Bounded()>& compute) const {
  return randomise(pay(context), context, compute);
}

std::optional<Release> Channel::release_for(std::span<const int64_t> clients, const ReleaseContext& context,
                                            const std::function<Bounded()>& compute) const {
  std::optional<Receipt> receipt;
  for (const int64_t client : clients) {
    ReleaseContext of_client = context;
    of_client.client = client;
    receipt = pay(of_client);
  }
  if (!receipt) return std::nullopt;
  return randomise(std::move(*receipt), context, compute);
}

Release Channel::release_clear(const ReleaseContext& context, const std::function<Contribution()>& compute) const {
  SOTTO_INVARIANT(terms_.mechanism == kClearMechanism);
  Receipt receipt = pay(context);
  Contribution contribution = compute();
  return Access::release(std::move(Access::values(contribution)), std::move(receipt));
}

Trusted<Bounded> Channel::hand_over(const ReleaseContext& context, const std::function<Bounded()>& compute) const {
  SOTTO_INVARIANT(terms_.mechanism == kTrustedMechanism);
  Receipt receipt = pay(context);
  return Access::trusted(compute(), std::move(receipt));
}

}  // namespace sotto::privacy

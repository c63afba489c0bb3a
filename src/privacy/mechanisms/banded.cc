#include "privacy/mechanisms/banded.h"

#include "base/error.h"
#include "privacy/access.h"
#include "privacy/ledger.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

namespace sotto::privacy {
namespace {

// A grid moves every round's value by up to this share of what the round is bounded by, and a participation shows in
// `band` rounds: √band of these in all, one of which the Gaussian has made room for.
constexpr double kGridShare = 0x1p-10 * (1.0 + 0x1p-5);
// w is kept in doubles. Beyond this, rounding it could move a value by more than the Gaussian has made room for.
constexpr double kLoudest = 0x1p38;

Group with_room_for_the_grid(Group group, int64_t band) {
  group.sensitivity *= 1 + kGridShare * (std::sqrt(static_cast<double>(band)) - 1);
  return group;
}

const BandedTerms& checked(const BandedTerms& terms, double noise_multiplier, const Group& group) {
  if (terms.band < 1 || terms.band > terms.separation || terms.band > terms.rounds) {
    fail_user(
        "a band of {} does not fit {} rounds with {} between two participations of a client: it must be between 1 and "
        "the smaller of both",
        terms.band, terms.rounds, terms.separation);
  }
  const double numbers = static_cast<double>(terms.band) * std::sqrt(static_cast<double>(group.coordinates));
  if (!(noise_multiplier * numbers < kLoudest)) {
    fail_user("noise of multiplier {} is too large to be kept over {} rounds; raise epsilon", noise_multiplier,
              terms.band);
  }
  return terms;
}

}  // namespace

BandedGaussian::BandedGaussian(double noise_multiplier, const Group& group, const BandedTerms& terms)
    : group_(group),
      terms_(checked(terms, noise_multiplier, group)),
      strategy_(terms_.rounds, terms_.band),
      gaussian_(GroupwiseGaussian::calibrated(noise_multiplier, {with_room_for_the_grid(group, terms_.band)})) {
  SOTTO_INVARIANT(group_.tensors == 1);
}

Channel BandedGaussian::channel(std::string what, Observer observer, const Neighbours& neighbours) const {
  return Channel::gaussian(std::move(what), observer, gaussian_, neighbours)
      .noting("band", {static_cast<double>(terms_.band)})
      .noting("separation", {static_cast<double>(terms_.separation)})
      .noting("rounds", {static_cast<double>(terms_.rounds)});
}

double BandedGaussian::stddev_per_round() const {
  return gaussian_.noise_stddev(0) * strategy_.noise_in_total() / std::sqrt(static_cast<double>(terms_.rounds));
}

bool BandedGaussian::is_repeated(const Channel& channel, const ReleaseContext& context) const {
  if (!restored_ || context.generator == Generator::kReplay) return false;
  const std::vector<Event> rows = context.ledger.events(context.round, terms_.rounds);
  return std::any_of(rows.begin(), rows.end(), [&](const Event& row) { return channel.makes(row); });
}

void BandedGaussian::charge_earlier_cohorts(const Channel& channel, const ReleaseContext& context) const {
  for (const Past& past : past_) {
    for (const int64_t client : past.cohort) {
      ReleaseContext of_client = context;
      of_client.client = client;
      channel.pay(of_client);
    }
  }
}

void BandedGaussian::require_separation(std::span<const int64_t> cohort) const {
  for (const Past& past : past_) {
    for (const int64_t client : cohort) {
      SOTTO_INVARIANT(std::find(past.cohort.begin(), past.cohort.end(), client) == past.cohort.end());
    }
  }
}

std::optional<Release> BandedGaussian::release(const Channel& channel, std::span<const int64_t> cohort,
                                               const ReleaseContext& context, const std::function<Bounded()>& sum) {
  const int64_t round = context.round;
  SOTTO_INVARIANT(round >= 1 && round <= terms_.rounds && (past_.empty() || past_.back().round < round));
  while (!past_.empty() && past_.front().round <= round - terms_.band) past_.pop_front();
  require_separation(cohort);
  if (cohort.empty()) return std::nullopt;
  if (is_repeated(channel, context)) charge_earlier_cohorts(channel, context);
  restored_ = false;
  std::optional<Receipt> receipt;
  for (const int64_t client : cohort) {
    ReleaseContext of_client = context;
    of_client.client = client;
    receipt = channel.pay(of_client);
  }
  SOTTO_INVARIANT(gaussian_.is_paid_by(*receipt));

  const Bounded bounded = sum();
  SOTTO_INVARIANT(bounded.groups() == std::vector<Group>{group_} && bounded.norm() == Norm::kL2);
  const NamedTensor& own = Access::values(bounded).front();
  const double diagonal = strategy_.at(round, round);
  at::Tensor mixed = own.value.to(at::kDouble) * diagonal;
  for (const Past& past : past_) mixed.sub_(past.noise, strategy_.at(round, past.round));

  Bounded value = Access::bounded({{own.name, mixed}}, gaussian_.groups(), Norm::kL2);
  NoiseSource noise = context.noise_source(*receipt, channel.terms().what);
  gaussian_.perturb(value, noise);
  const at::Tensor released = (Access::values(value).front().value / diagonal).to(at::kFloat);
  if (terms_.band > 1) {
    past_.push_back({round, released.to(at::kDouble) - own.value.to(at::kDouble),
                     std::vector<int64_t>(cohort.begin(), cohort.end())});
  }
  return Access::release({{own.name, released}}, std::move(*receipt));
}

NamedTensors BandedGaussian::state() const {
  NamedTensors values;
  for (const Past& past : past_) {
    const std::string round = fmt::format("banded.{}.", past.round);
    values.push_back({round + "noise", past.noise.clone()});
    values.push_back({round + "cohort", at::tensor(past.cohort, at::kLong)});
  }
  return values;
}

void BandedGaussian::restore(const NamedTensors& state) {
  past_.clear();
  restored_ = true;
  for (int64_t round = 1; round <= terms_.rounds; ++round) {
    const std::string name = fmt::format("banded.{}.", round);
    const at::Tensor noise = find_tensor(state, name + "noise");
    if (!noise.defined()) continue;
    const at::Tensor cohort = find_tensor(state, name + "cohort").contiguous();
    const auto* clients = cohort.data_ptr<int64_t>();
    past_.push_back({round, noise.clone(), std::vector<int64_t>(clients, clients + cohort.numel())});
  }
}

}  // namespace sotto::privacy

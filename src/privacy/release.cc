#include "privacy/release.h"

#include "base/error.h"
#include "privacy/access.h"
#include "privacy/ledger.h"

#include <ATen/ATen.h>

namespace sotto::privacy {
namespace {

void set_zero(NamedTensors& tensors) {
  for (auto& [name, value] : tensors) value.zero_();
}

}  // namespace

const NamedTensors& Upload::values() const {
  return std::visit([](const auto& content) -> const NamedTensors& { return content.values(); }, content_);
}

NoiseSource ReleaseContext::noise_source(std::string_view what) const {
  if (noise == NoiseKind::kSecure) return NoiseSource::secure();
  return NoiseSource::replay(seed, what, static_cast<uint64_t>(round), static_cast<uint64_t>(client));
}

Release in_the_clear(Contribution&& contribution, const ReleaseContext& context, const std::string& what,
                     const std::string& reason) {
  const Event event{.round = context.round,
                    .client = context.client,
                    .observer = "server",
                    .what = what,
                    .mechanism = kClearMechanism,
                    .why_unproven = reason};
  return Access::release(std::move(Access::values(contribution)), context.ledger.spend(event));
}

TrustedServer TrustedServer::declared_by(const config::RunSpec& spec) {
  if (!spec.privacy || !spec.privacy->trusts_server()) {
    fail_user(
        "method {} hands bounded updates to the server without noise, so the server must be declared trusted: set "
        "privacy.observer to \"clients\" or \"public\", or choose a method with local noise",
        spec.method);
  }
  return {};
}

Release post_process(Release&& release, const std::function<NamedTensors(const NamedTensors&)>& change) {
  NamedTensors changed = change(release.values_);
  return {std::move(changed), std::move(release.receipt_)};
}

Trusted<Bounded> hand_over(Bounded&& bounded, const TrustedServer&, const ReleaseContext& context,
                           const std::string& what) {
  const Event event{.round = context.round,
                    .client = context.client,
                    .observer = "server",
                    .what = what,
                    .mechanism = kTrustedMechanism,
                    .why_unproven = kTrustedReason};
  return Access::trusted(std::move(bounded), context.ledger.spend(event));
}

BoundedSum::BoundedSum(const NamedTensors& like, std::vector<Group> groups)
    : sum_(clone(like)), groups_(std::move(groups)) {}

void BoundedSum::add(const Trusted<Bounded>& value) {
  SOTTO_INVARIANT(value.value().groups() == groups_ && value.value().norm() == Norm::kL2);
  if (taken_) set_zero(sum_);
  taken_ = false;
  for (size_t i = 0; i < sum_.size(); ++i) sum_[i].value.add_(value.values()[i].value);
  ++count_;
}

Bounded BoundedSum::take() {
  if (taken_) set_zero(sum_);
  taken_ = true;
  count_ = 0;
  return Access::bounded(sum_, groups_, Norm::kL2);
}

}  // namespace sotto::privacy

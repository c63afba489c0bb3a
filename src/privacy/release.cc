#include "privacy/release.h"

#include "base/error.h"
#include "privacy/access.h"
#include "privacy/ledger.h"

#include <ATen/ATen.h>

#include <nlohmann/json.hpp>

namespace sotto::privacy {
namespace {

void set_zero(NamedTensors& tensors) {
  for (auto& [name, value] : tensors) value.zero_();
}

}  // namespace

const NamedTensors& Upload::values() const {
  return std::visit([](const auto& content) -> const NamedTensors& { return content.values(); }, content_);
}

int64_t Upload::row() const {
  return std::visit([](const auto& content) { return content.receipt().row(); }, content_);
}

NoiseSource ReleaseContext::post_processing_noise(std::string_view purpose) const {
  return noise_source(Access::foreign_receipt(), purpose);
}

NoiseSource ReleaseContext::noise_source(const Receipt&, std::string_view purpose) const {
  if (generator == Generator::kSecure) return NoiseSource::secure();
  ledger.claim_stream(*this, purpose);
  return NoiseSource::replay(seed, purpose, static_cast<uint64_t>(round), static_cast<uint64_t>(client));
}

Disclosed Disclosed::noted(const Event& terms, const std::string& key) {
  const auto numbers = nlohmann::json::parse(terms.parameters).at(key).get<std::vector<double>>();
  return Disclosed(at::tensor(numbers, at::kDouble));
}

Disclosed Disclosed::beside(const Event& terms, at::Tensor value) {
  SOTTO_INVARIANT(!terms.why_unproven.empty() || terms.neighbours.adjacency == Adjacency::kReplaceSameLabel);
  return Disclosed(std::move(value));
}

TrustedServer TrustedServer::declared_by(const std::optional<PrivacyTerms>& terms, const std::string& method) {
  if (!terms || !terms->trusts_server()) {
    fail_user(
        "method {} hands bounded updates to the server without noise, so the server must be declared trusted: set "
        "privacy.observer to \"clients\" or \"public\", or choose a method with local noise",
        method);
  }
  return {};
}

BoundedSum::BoundedSum(const NamedTensors& like, std::vector<Group> groups) : groups_(std::move(groups)) {
  for (const auto& [name, value] : like) sum_.push_back({name, at::zeros(value.sizes(), at::kDouble)});
}

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

#include "federation/public_claims.h"

#include "base/error.h"
#include "data/origin.h"
#include "methods/catalogue.h"
#include "models/features.h"
#include "models/projection.h"
#include "models/weights/pretrained_card.h"
#include "models/weights/weight_store.h"

#include <string>
#include <vector>

namespace sotto::federation {
namespace {

struct Claim {
  std::string what;  // "model.weights: 'x' was pretrained on"
  data::Origin origin;
  std::string remedy;
};

void claim_weights(const std::string& key, const std::string& weights, std::vector<Claim>& claims) {
  const auto card = models::find_pretrained_card(weights);
  if (!card) return;
  claims.push_back({.what = fmt::format("{}: '{}' was pretrained on", key, weights),
                    .origin = card->origin,
                    .remedy = "pretrain on another dataset, or on domains that the clients do not hold"});
}

std::vector<Claim> claims_of(const config::RunSpec& spec) {
  std::vector<Claim> claims;
  const methods::MethodEntry& method = methods::find_method(spec.method);
  if (method.uses_model) claim_weights("model.weights", spec.model.weights, claims);
  for (const std::string& backbone : models::backbone_names(spec.data.features)) {
    claim_weights("data.features", backbone, claims);
  }
  if (const auto data = models::projection_data(spec.data)) {
    claims.push_back({.what = fmt::format("data.project_on: '{}' is", spec.data.project_on),
                      .origin = data::origin_of(*data),
                      .remedy = "name another dataset, or \"random\""});
  }
  for (const data::DataOptions& data :
       method.public_data ? method.public_data(spec) : std::vector<data::DataOptions>()) {
    claims.push_back({.what = fmt::format("method.public_data: '{}' is", data.name),
                      .origin = data::origin_of(data),
                      .remedy = "name another dataset"});
  }
  return claims;
}

[[noreturn]] void refuse(const std::string& what, const data::Part& part, const std::string& remedy) {
  fail_user("{} {}, the clients' own records, so that it is not public and no ε covers it; {}", what,
            data::describe(part), remedy);
}

}  // namespace

void refuse_own_data_as_public(const config::RunSpec& spec) {
  refuse_own_data_as_public(spec, spec.data);
}

void refuse_own_data_as_public(const config::RunSpec& spec, const data::DataOptions& clients) {
  if (!spec.privacy) return;
  if (const auto part = models::seen_by_backbone(clients.path)) {
    refuse(fmt::format("data.path: the features in {} come from a backbone that was pretrained on", clients.path),
           *part, "compute them with a backbone that has not seen these records");
  }
  const std::vector<Claim> claims = claims_of(spec);
  if (claims.empty()) return;
  const data::Origin own = data::origin_of(clients);
  for (const Claim& claim : claims) {
    if (const auto part = data::common_part(claim.origin, own)) refuse(claim.what, *part, claim.remedy);
  }
}

}  // namespace sotto::federation

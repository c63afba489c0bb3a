#include "attacks/prototype_membership.h"

#include "attacks/parts/measures.h"
#include "attacks/parts/prototypes.h"

#include <ATen/ATen.h>

#include <nlohmann/json.hpp>

namespace sotto::attacks {
namespace {

using nlohmann::json;

json run(const Target& target, const AttackOptions& options) {
  const int64_t client = options.client.value_or(0);
  const federation::Setup& setup = target.setup();
  const Membership membership = members_and_others(setup, client, options.records, options.seed);
  const auto measure = [&](const PrototypeTarget& held) {
    const at::Tensor features = held.features(inputs_of(membership.records));
    const at::Tensor scores = prototype_scores(features, membership.records.y, held.table);
    return describe(by_membership(scores, membership.members));
  };
  json result = measure(prototypes_of(target, client, options.round, options.threads));
  result["client"] = client;
  if (setup.spec().privacy) {
    result["baseline"] = measure(prototypes_without_privacy(target, client, options.round, options.threads));
  }
  return result;
}

}  // namespace

AttackEntry prototype_membership() {
  return {.name = "prototype-membership",
          .what = "whether a record is in a class's prototype",
          .citation = "",
          .needs = "recorded uploads that hold prototypes",
          .run = run};
}

}  // namespace sotto::attacks

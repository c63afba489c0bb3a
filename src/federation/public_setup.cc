#include "federation/public_setup.h"

#include "base/error.h"
#include "base/random.h"
#include "methods/catalogue.h"
#include "privacy/guarantee.h"

#include <algorithm>
#include <utility>

namespace sotto::federation {
namespace {

// A budget is a promise about all that leaves. As printed it is held to what a paper claims, and says so.
void refuse_unproven(const config::RunSpec& spec, const methods::ReleasePlan& plan) {
  if (!spec.privacy || spec.as_printed()) return;
  const std::string observer = settings::word(spec.privacy->observer);
  const auto& named = spec.privacy->unproven;
  for (const privacy::Channel& channel : plan) {
    const privacy::Event& terms = channel.terms();
    if (terms.why_unproven.empty() || !privacy::is_seen_by(terms, observer)) continue;
    if (std::find(named.begin(), named.end(), terms.what) != named.end()) continue;
    fail_user(
        "method.name: '{}' releases '{}' outside of any budget ({}); choose a method that keeps the promise of "
        "[privacy], remove that section, or allow it by privacy.unproven = [\"{}\"]",
        spec.method, terms.what, terms.why_unproven, terms.what);
  }
}

}  // namespace

int64_t declared_records(const config::RunSpec& spec, int64_t held) {
  return spec.privacy ? spec.privacy->declared_records(held) : held;
}

PublicSetup::PublicSetup(const config::RunSpec& spec, methods::PublicFacts facts, std::vector<int32_t> participations,
                         std::string why_unproven, std::optional<EvaluationTerms> evaluation) {
  if (spec.federation.sampling == methods::CohortSampling::kSecret &&
      !(spec.privacy && spec.privacy->unit == privacy::Unit::kClient)) {
    fail_user(
        "federation.sampling: \"secret\" hides who takes part, which protects clients (privacy.unit = \"client\"); use "
        "\"fixed\"");
  }
  auto parts = std::make_shared<Parts>();
  parts->spec = spec;
  parts->method = &methods::find_method(spec.method);
  parts->facts = std::move(facts);
  parts->participations = std::move(participations);
  parts->why_unproven = std::move(why_unproven);
  parts->evaluation = evaluation;
  if (parts->method->uses_model) {
    RandomStream init(spec.seed, "model-init");
    models::make_model(spec.model, parts->facts.task, init, !spec.privacy);
  } else if (spec.model.lora.rank > 0) {
    fail_user("model.lora: '{}' trains something else than what [model] says; leave it out", spec.method);
  }
  parts_ = std::move(parts);
  const methods::ReleasePlan plan = plan_for(facts_of(0, this->facts().least_records));
  if (this->why_unproven().empty()) refuse_unproven(spec, plan);
}

methods::ClientFacts PublicSetup::facts_of(int64_t client, int64_t records) const {
  const double budget = spec().privacy ? spec().privacy->budget_of(client) : 0.0;
  return {declared_records(spec(), records), participations_of(client),
          evaluation() ? budget * (1 - evaluation()->share) : budget};
}

methods::ReleasePlan PublicSetup::plan_for(const methods::ClientFacts& client) const {
  methods::ReleasePlan plan = method().plan(context(), client);
  if (evaluation()) {
    plan.push_back(evaluation_channel(*spec().privacy, plan, client.epsilon / (1 - evaluation()->share)));
  }
  for (privacy::Channel& channel : plan) {
    if (channel.terms().why_unproven.empty()) channel.unproven(why_unproven());
  }
  return plan;
}

}  // namespace sotto::federation

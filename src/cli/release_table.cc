#include "cli/release_table.h"

#include "base/table.h"
#include "cli/output.h"
#include "methods/parts/loudness.h"
#include "privacy/guarantee.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace sotto::cli {

using nlohmann::json;

json plan_cost(const federation::FederationPlan& plan, int64_t client, int64_t records) {
  const federation::PublicSetup& setup = plan.setup();
  const auto& terms = setup.spec().privacy;
  json releases = json::array();
  for (const privacy::Channel& channel : setup.plan_for(setup.facts_of(client, records))) {
    const privacy::Event& event = channel.terms();
    privacy::Tally tally;
    tally.add(event, channel.times());
    const bool costs = terms && event.why_unproven.empty();
    releases.push_back({{"what", event.what},
                        {"observer", event.observer},
                        {"mechanism", event.mechanism},
                        {"how_often", channel.how_often()},
                        {"times", channel.times()},
                        {"epsilon", costs ? json(tally.proven(terms->delta)) : json(nullptr)},
                        {"why_unproven", event.why_unproven.empty() ? json(nullptr) : json(event.why_unproven)},
                        {"noise_in_norm", event.noise_scale > 0 && channel.reach().coordinates > 0
                                              ? json(methods::loudness(channel.reach()).in_norm)
                                              : json(nullptr)}});
  }
  return releases;
}

std::string describe_plan(const federation::FederationPlan& plan, int64_t client, int64_t records) {
  const config::RunSpec& spec = plan.setup().spec();
  const methods::PublicFacts& facts = plan.setup().facts();
  std::string text = fmt::format(
      "plan        {}\nmethod      {} ({}), {} rounds, at most {} of them with you\nclients     {}, {} a round; at "
      "least {} "
      "report\n",
      plan.short_hash(), spec.method, settings::word(spec.variant), spec.rounds, facts.most_participations,
      spec.data.clients, methods::expected_cohort(spec), plan.terms().quorum);
  if (spec.privacy) {
    text += fmt::format("promise     ε = {:.4g}, δ = {:.4g}, {} of a {}\n            {}\n",
                        spec.privacy->budget_of(client), spec.privacy->delta, privacy::to_text(spec.privacy->adjacency),
                        settings::word(spec.privacy->unit), privacy::describe(spec.privacy->neighbours()));
  } else {
    text += "promise     none: no privacy is promised\n";
  }
  Table table({"release", "seen by", "how often", "ε over the federation", "noise / signal bound"});
  for (const json& release : plan_cost(plan, client, records)) {
    const auto number = [](const json& value) {
      return value.is_null() ? std::string("–") : fmt::format("{:.4g}", value.get<double>());
    };
    table.add_row({release["what"], release["observer"], release["how_often"],
                   release["epsilon"].is_null() ? "∞" : number(release["epsilon"]), number(release["noise_in_norm"])});
  }
  return text + "\n" + table.to_string(kLine);
}

}  // namespace sotto::cli

#include "member/policy.h"

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "privacy/guarantee.h"
#include "settings/toml.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace sotto::member {
namespace {

constexpr const char* kLocal = "local";
constexpr const char* kCentral = "central";
constexpr const char* kRecords = "records";
constexpr const char* kReleased = "released";

bool holds(const std::vector<std::string>& list, const std::string& value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

std::vector<std::string> some_of(settings::Section& section, const char* key, const std::vector<std::string>& fallback,
                                 const std::vector<std::string>& choices) {
  std::vector<std::string> values = section.texts(key, fallback);
  for (const std::string& value : values) {
    if (!holds(choices, value))
      section.fail(key, fmt::format("has '{}', which is none of {}", value, join(choices, ", ")));
  }
  return values;
}

template <typename... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) {
  throw NotAllowed("the policy does not allow this federation: " + fmt::format(format, std::forward<Args>(args)...));
}

data::DataOptions read_data(settings::Section section, const fs::path& folder) {
  data::DataOptions options = data::read_data_options(std::move(section));
  if (!options.path.empty() && fs::path(options.path).is_relative()) {
    options.path = (folder / options.path).lexically_normal().string();
  }
  return options;
}

void read_allow(settings::Section section, Policy& policy) {
  policy.methods = section.texts("methods", {});
  policy.variants = some_of(section, "variants", {"sound"}, {"sound", "paper"});
  policy.trust = some_of(section, "trust", {kLocal}, {kLocal, kCentral});
  policy.unproven = section.boolean("unproven", false);
  policy.declare = some_of(section, "declare", {}, {kRecords});
  policy.released_evaluation = section.one_of("evaluation", kLocal, {kLocal, kReleased}) == kReleased;
  policy.least_cohort = section.integer("least_cohort", policy.least_cohort, settings::at_least(1));
  policy.most_participations = section.integer("most_participations", 0, settings::at_least(0));
  policy.noise = section.choice("noise", policy.noise);
  section.finish();
}

}  // namespace

Policy read_policy(const fs::path& folder) {
  const fs::path file = folder / "policy.toml";
  if (!fs::exists(file)) fail_user("{} has no policy.toml: without one nothing may leave it", folder.string());
  settings::ParsedToml parsed = settings::parse_toml(read_file(file), file.string());
  settings::Section root(std::move(parsed.value), "", parsed.source);
  Policy policy;
  policy.data = read_data(root.child("data"), folder);
  settings::Section budget = root.child("budget");
  policy.budget = privacy::read_promise(budget);
  policy.per_day = budget.number("per_day", 0, settings::kNonNegative);
  budget.finish();
  read_allow(root.child("allow"), policy);
  settings::Section server = root.child("server");
  policy.address = server.text("address", "");
  policy.name = server.text("name", "");
  server.finish();
  root.finish();
  return policy;
}

void require_allowed(const Policy& policy, const federation::FederationPlan& plan, int64_t records) {
  const federation::PublicSetup& setup = plan.setup();
  const config::RunSpec& spec = setup.spec();
  if (!holds(policy.methods, spec.method)) {
    refuse("its method is {}, and allow.methods has {}", spec.method,
           policy.methods.empty() ? "none" : join(policy.methods, ", "));
  }
  const std::string variant = settings::word(spec.variant);
  if (!holds(policy.variants, variant)) refuse("it runs the variant '{}', which allow.variants does not have", variant);
  if (!spec.privacy && !policy.unproven) refuse("it promises no privacy at all, and allow.unproven is false");
  const std::string trust = spec.privacy && spec.privacy->trusts_server() ? kCentral : kLocal;
  if (!holds(policy.trust, trust)) refuse("it needs {} trust, which allow.trust does not have", trust);
  if (spec.privacy && policy.noise == privacy::Generator::kSecure &&
      spec.privacy->generator != privacy::Generator::kSecure) {
    refuse("its noise can be computed from its seed, and allow.noise is \"secure\"");
  }
  if (spec.privacy && !(spec.privacy->neighbours() == policy.budget.neighbours())) {
    refuse("it protects {} of a {}, and the budget is one of {} of a {}", privacy::to_text(spec.privacy->adjacency),
           settings::word(spec.privacy->unit), privacy::to_text(policy.budget.adjacency),
           settings::word(policy.budget.unit));
  }
  const int64_t cohort = methods::expected_cohort(spec);
  if (cohort < policy.least_cohort)
    refuse("its rounds have {} clients, fewer than allow.least_cohort = {}", cohort, policy.least_cohort);
  const int64_t most = setup.facts().most_participations;
  if (policy.most_participations > 0 && most > policy.most_participations) {
    refuse("a client may be asked {} times, more than allow.most_participations = {}", most,
           policy.most_participations);
  }
  if (spec.privacy && spec.privacy->records == 0 && !holds(policy.declare, kRecords)) {
    refuse("it makes the number of records public, and allow.declare does not have \"records\"");
  }
  if (setup.evaluation() && !policy.released_evaluation) {
    refuse("it asks how many held-out records its model gets right, and allow.evaluation is \"local\"");
  }
  if (federation::declared_records(spec, records) < setup.facts().least_records) {
    refuse("it declares that everybody has at least {} records, and here are {}", setup.facts().least_records, records);
  }
  if (policy.unproven) return;
  const std::string observer = settings::word(policy.budget.observer);
  for (const privacy::Channel& channel : setup.plan_for(setup.facts_of(0, records))) {
    const privacy::Event& terms = channel.terms();
    if (terms.why_unproven.empty() || !privacy::is_seen_by(terms, observer)) continue;
    refuse("of '{}' nothing can be proven ({}), and allow.unproven is false", terms.what, terms.why_unproven);
  }
}

privacy::Tally promised(const Policy& policy, const federation::FederationPlan& plan, int64_t client, int64_t records) {
  const std::string observer = settings::word(policy.budget.observer);
  privacy::Tally tally;
  const federation::PublicSetup& setup = plan.setup();
  for (const privacy::Channel& channel : setup.plan_for(setup.facts_of(client, records))) {
    if (channel.terms().why_unproven.empty() && privacy::is_seen_by(channel.terms(), observer)) {
      tally.add(channel.terms(), channel.times());
    }
  }
  return tally;
}

}  // namespace sotto::member

#include "federation/setup.h"

#include "base/error.h"
#include "base/log.h"
#include "federation/cohort.h"
#include "federation/public_claims.h"
#include "methods/catalogue.h"
#include "privacy/guarantee.h"

#include <algorithm>

namespace sotto::federation {
namespace {

// A δ of 1/n lets a mechanism publish one whole record and still keep its promise.
void warn_of_large_delta(const config::RunSpec& spec, int64_t train_records) {
  if (!spec.privacy) return;
  const bool clients = spec.privacy->unit == privacy::Unit::kClient;
  const int64_t n = clients ? spec.data.clients : std::max<int64_t>(1, train_records / spec.data.clients);
  if (spec.privacy->delta * static_cast<double>(n) <= 1) return;
  warn("privacy.delta = {} is more than 1/{}, one in the {}: at such a δ even giving a {} away whole would be allowed",
       spec.privacy->delta, n, clients ? "number of clients" : "records of an average client",
       settings::word(spec.privacy->unit));
}

// Scales and categories that were found in everybody's records let one record move all others before any noise is
// drawn: no sensitivity covers that.
void require_declared_schema(const config::RunSpec& spec, const data::Dataset& dataset) {
  if (!spec.privacy || !dataset.schema_inferred || spec.data.schema.inferred) return;
  fail_user(
      "data.schema: a private run needs the ranges and categories of {} declared, for what is learnt from the clients' "
      "records no ε covers; `sotto data show {} --schema` writes a template, data.schema = \"inferred\" runs without "
      "a guarantee",
      spec.data.path, spec.data.path);
}

int64_t least_records(const data::Partition& partition) {
  const int64_t different = partition.all_equal() ? 1 : partition.clients();
  int64_t least = partition.shard(0).size();
  for (int64_t client = 1; client < different; ++client) least = std::min(least, partition.shard(client).size());
  return least;
}

int64_t declared_records(const config::RunSpec& spec, int64_t held) {
  return spec.privacy ? spec.privacy->declared_records(held) : held;
}

double average_records(const config::RunSpec& spec, const models::TaskData& data) {
  if (spec.privacy && spec.privacy->records > 0) return static_cast<double>(spec.privacy->records);
  return static_cast<double>(data.dataset.train.size()) / static_cast<double>(spec.data.clients);
}

methods::PublicFacts declared_facts(const config::RunSpec& spec, const models::TaskData& data,
                                    const data::Partition& partition, const std::vector<int32_t>& participations) {
  return {.task = data.task,
          .kind = data.dataset.kind,
          .class_names = data.dataset.class_names,
          .feature_blocks = data.feature_blocks,
          .average_records = average_records(spec, data),
          .least_records = declared_records(spec, least_records(partition)),
          .most_participations = *std::max_element(participations.begin(), participations.end())};
}

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
        "[privacy], "
        "remove that section, or allow it by privacy.unproven = [\"{}\"]",
        spec.method, terms.what, terms.why_unproven, terms.what);
  }
}

std::shared_ptr<const models::TaskData> load(const config::RunSpec& spec, models::TaskDataCache& cache) {
  methods::find_method(spec.method);
  refuse_own_data_as_public(spec);
  auto data = std::make_shared<const models::TaskData>(cache.load(spec.data, spec.model, spec.seed));
  warn_of_large_delta(spec, data->dataset.train.size());
  return data;
}

std::shared_ptr<const models::TaskData> load(const config::RunSpec& spec) {
  models::TaskDataCache unshared;
  return load(spec, unshared);
}

}  // namespace

Setup::Setup(const config::RunSpec& spec) : Setup(spec, load(spec)) {}

Setup::Setup(const config::RunSpec& spec, models::TaskDataCache& cache) : Setup(spec, load(spec, cache)) {}

Setup::Setup(const config::RunSpec& spec, std::shared_ptr<const models::TaskData> data) {
  auto parts = std::make_shared<Parts>();
  parts->spec = spec;
  parts->method = &methods::find_method(spec.method);
  parts->data = std::move(data);
  require_declared_schema(spec, parts->data->dataset);
  parts->partition = data::make_partition(spec.data, parts->data->dataset, spec.seed);
  if (parts->method->uses_model) {
    RandomStream init(spec.seed, "model-init");
    models::make_model(spec.model, parts->data->task, init);
  }
  parts->participations = count_participations(spec);
  parts->facts = declared_facts(spec, *parts->data, *parts->partition, parts->participations);
  parts_ = std::move(parts);
  const methods::ReleasePlan plan = plan_for(0);
  if (why_unproven().empty()) refuse_unproven(spec, plan);
}

Setup Setup::with_records(data::Records train) const {
  auto parts = std::make_shared<Parts>(*parts_);
  auto data = std::make_shared<models::TaskData>(*parts_->data);
  data->dataset.train = std::move(train);
  parts->data = std::move(data);
  return Setup(std::shared_ptr<const Parts>(std::move(parts)));
}

methods::ClientFacts Setup::facts_of(int64_t client, int64_t records) const {
  return {declared_records(spec(), records), participations_of(client),
          spec().privacy ? spec().privacy->budget_of(client) : 0.0};
}

std::string Setup::why_unproven() const {
  return dataset().schema_inferred ? "the table's schema was inferred from the clients' records; declare data.schema"
                                   : "";
}

methods::ReleasePlan Setup::plan_for(int64_t client) const {
  methods::ReleasePlan plan = method().plan(public_context(), facts_of(client, partition().shard(client).size()));
  const std::string why = why_unproven();
  for (privacy::Channel& channel : plan) {
    if (channel.terms().why_unproven.empty()) channel.unproven(why);
  }
  return plan;
}

}  // namespace sotto::federation

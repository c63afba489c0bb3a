#include "federation/setup.h"

#include "base/error.h"
#include "base/log.h"
#include "federation/cohort.h"
#include "federation/public_claims.h"
#include "methods/catalogue.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

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

std::string why_nothing_is_proven(const data::Dataset& dataset) {
  return dataset.schema_inferred ? "the table's schema was inferred from the clients' records; declare data.schema"
                                 : "";
}

void require_declared_data(const methods::PublicFacts& declared, const models::TaskData& data) {
  const data::Dataset& dataset = data.dataset;
  if (dataset.kind != declared.kind || data.task.tokens != declared.task.tokens ||
      data.task.record_shape != declared.task.record_shape) {
    fail_user("{}: the federation declares records of the shape [{}], and these are [{}] or of another kind",
              dataset.name, fmt::join(declared.task.record_shape, ", "), fmt::join(data.task.record_shape, ", "));
  }
  if (dataset.class_names != declared.class_names) {
    fail_user("{}: the federation declares the classes {}, in this order, and these records have {}", dataset.name,
              fmt::join(declared.class_names, ", "), fmt::join(dataset.class_names, ", "));
  }
}

// Somebody's own records in a federation of many; the others' are nowhere to be had.
class OneClient : public data::Partition {
 public:
  OneClient(int64_t clients, int64_t client, data::Shard shard)
      : clients_(clients), client_(client), shard_(std::move(shard)) {}

  int64_t clients() const override { return clients_; }
  data::Shard shard(int64_t client) const override {
    SOTTO_INVARIANT(client == client_);
    return shard_;
  }

 private:
  int64_t clients_;
  int64_t client_;
  data::Shard shard_;
};

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
  require_declared_schema(spec, data->dataset);
  std::shared_ptr<const data::Partition> partition = data::make_partition(spec.data, data->dataset, spec.seed);
  std::vector<int32_t> participations = count_participations(spec);
  methods::PublicFacts facts = declared_facts(spec, *data, *partition, participations);
  PublicSetup published(spec, std::move(facts), std::move(participations), why_nothing_is_proven(data->dataset));
  parts_ = std::make_shared<const Parts>(Parts{std::move(published), std::move(data), std::move(partition)});
}

Setup Setup::at_home(const PublicSetup& published, int64_t client, std::shared_ptr<const models::TaskData> data) {
  const config::RunSpec& spec = published.spec();
  require_declared_schema(spec, data->dataset);
  require_declared_data(published.facts(), *data);
  data::DataOptions alone = spec.data;
  alone.clients = 1;
  alone.partition = "iid";
  auto partition = std::make_shared<const OneClient>(spec.data.clients, client,
                                                     data::make_partition(alone, data->dataset, spec.seed)->shard(0));
  return Setup(std::make_shared<const Parts>(Parts{published, std::move(data), std::move(partition)}));
}

Setup Setup::with_records(data::Records train) const {
  auto parts = std::make_shared<Parts>(*parts_);
  auto data = std::make_shared<models::TaskData>(*parts_->data);
  data->dataset.train = std::move(train);
  parts->data = std::move(data);
  return Setup(std::shared_ptr<const Parts>(std::move(parts)));
}

methods::ClientFacts Setup::facts_of(int64_t client) const {
  return published().facts_of(client, partition().shard(client).size());
}

methods::ReleasePlan Setup::plan_for(int64_t client) const {
  return published().plan_for(facts_of(client));
}

}  // namespace sotto::federation

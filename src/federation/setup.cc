#include "federation/setup.h"

#include "base/error.h"
#include "base/log.h"
#include "base/shell_word.h"
#include "data/declared_classes.h"
#include "federation/cohort.h"
#include "federation/public_claims.h"
#include "methods/catalogue.h"
#include "models/feature_frame.h"

#include <ATen/ATen.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>
#include <vector>

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
      spec.data.path, shell_word(spec.data.path));
}

// The only record of a class would change the shape of all that is sent. One that is replaced keeps its class.
void require_declared_classes(const config::RunSpec& spec, const data::Dataset& dataset) {
  if (!spec.privacy || spec.privacy->adjacency == privacy::Adjacency::kReplaceSameLabel) return;
  if (!data::finds_classes_in_records(spec.data, dataset)) return;
  fail_user(
      "data.classes: a private run needs the classes of {} declared, for what is found in the clients' records no ε "
      "covers; if there can be no others than these: {}",
      spec.data.path, data::declaration_of(dataset.class_names));
}

// Spread over classes, those who are held out would depend on everybody's labels, and one record that changes its class
// would change who else trains. Known datasets are dealt by whoever makes the experiment.
data::Strata strata_of(const config::RunSpec& spec, bool own_records) {
  const bool proven = spec.privacy && spec.privacy->unit == privacy::Unit::kRecord;
  if (!proven || !own_records || spec.privacy->adjacency == privacy::Adjacency::kReplaceSameLabel) {
    return data::Strata::kClasses;
  }
  return data::Strata::kNone;
}

// And where one record more or less is hidden, all places after it change.
void refuse_to_hold_out_by_place(const config::RunSpec& spec, const data::Dataset& dataset, bool own_records) {
  if (strata_of(spec, own_records) == data::Strata::kClasses) return;
  if (spec.privacy->adjacency != privacy::Adjacency::kAddRemove) return;
  const bool holds_out = (dataset.test.size() == 0 && spec.data.test_fraction > 0) || spec.data.validation > 0 ||
                         spec.data.train_fraction < 1 || spec.data.limit > 0;
  if (!holds_out) return;
  fail_user(
      "privacy.adjacency: under \"add-remove\" who is held out would depend on how many records there are, and one "
      "more would change who else trains; bring held-out records of their own, or set data.test_fraction = 0 and no "
      "data.validation, data.train_fraction or data.limit, or choose \"zero-out\"");
}

int64_t least_records(const data::Partition& partition) {
  const int64_t different = partition.all_equal() ? 1 : partition.clients();
  int64_t least = partition.shard(0).size();
  for (int64_t client = 1; client < different; ++client) least = std::min(least, partition.shard(client).size());
  return least;
}

double average_records(const config::RunSpec& spec, const models::TaskData& data) {
  if (spec.privacy && spec.privacy->records > 0) return static_cast<double>(spec.privacy->records);
  return (1 - spec.data.validation) * static_cast<double>(data.dataset.train.size()) /
         static_cast<double>(spec.data.clients);
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

// Around each client's own mean, if data.centre asks for it. One record then moves all others of its client, before any
// bound and any noise: with [privacy] it is for clients that send nothing.
std::shared_ptr<const models::TaskData> around_own_means(const PublicSetup& published,
                                                         std::shared_ptr<const models::TaskData> data,
                                                         const std::vector<data::Shard>& clients) {
  const config::RunSpec& spec = published.spec();
  if (spec.data.centre != "own") return data;
  if (spec.privacy && !published.plan_for(published.facts_of(0, clients.front().size())).empty()) {
    fail_user(
        "data.centre: \"own\" lets one record move all others of its client before any noise is drawn, so that no ε "
        "covers what '{}' sends; use \"record\" or a file with a public vector",
        spec.method);
  }
  auto centred = std::make_shared<models::TaskData>(*data);
  models::centre_by_client(centred->dataset, spec.data, clients);
  return centred;
}

std::vector<data::Shard> shards_of(const data::Partition& partition) {
  std::vector<data::Shard> shards;
  shards.reserve(static_cast<size_t>(partition.clients()));
  for (int64_t client = 0; client < partition.clients(); ++client) shards.push_back(partition.shard(client));
  return shards;
}

std::string why_nothing_is_proven(const data::Dataset& dataset) {
  return dataset.schema_inferred ? "the table's schema was inferred from the clients' records; declare data.schema"
                                 : "";
}

// With the labels that they have in the declared list: somebody's own records need not have all of them.
std::shared_ptr<const models::TaskData> as_declared(const methods::PublicFacts& declared,
                                                    std::shared_ptr<const models::TaskData> data) {
  if (data->dataset.class_names == declared.class_names) return data;
  auto relabelled = std::make_shared<models::TaskData>(*data);
  data::declare_classes(relabelled->dataset, declared.class_names);
  relabelled->task.classes = relabelled->dataset.classes();
  return relabelled;
}

void require_declared_data(const methods::PublicFacts& declared, const models::TaskData& data) {
  const data::Dataset& dataset = data.dataset;
  if (dataset.kind != declared.kind || data.task.tokens != declared.task.tokens ||
      data.task.record_shape != declared.task.record_shape) {
    fail_user("{}: the federation declares records of the shape [{}], and these are [{}] or of another kind",
              dataset.name, fmt::join(declared.task.record_shape, ", "), fmt::join(data.task.record_shape, ", "));
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
  require_declared_classes(spec, data->dataset);
  const bool own_records = !spec.data.path.empty();
  refuse_to_hold_out_by_place(spec, data->dataset, own_records);
  std::shared_ptr<const data::Partition> partition =
      data::make_partition(spec.data, data->dataset, spec.seed, strata_of(spec, own_records));
  std::vector<int32_t> participations = count_participations(spec);
  methods::PublicFacts facts = declared_facts(spec, *data, *partition, participations);
  PublicSetup published(spec, std::move(facts), std::move(participations), why_nothing_is_proven(data->dataset));
  auto centred = spec.data.centre == "own" ? around_own_means(published, data, shards_of(*partition)) : data;
  parts_ = std::make_shared<const Parts>(
      Parts{std::move(published), std::move(centred), std::move(partition), std::move(data)});
}

Setup Setup::at_home(const PublicSetup& published, int64_t client, std::shared_ptr<const models::TaskData> data) {
  const config::RunSpec& spec = published.spec();
  require_declared_schema(spec, data->dataset);
  require_declared_data(published.facts(), *data);
  data = as_declared(published.facts(), std::move(data));
  data::DataOptions alone = spec.data;
  alone.clients = 1;
  alone.partition = "iid";
  refuse_to_hold_out_by_place(spec, data->dataset, true);
  const data::Shard own = data::make_partition(alone, data->dataset, spec.seed, strata_of(spec, true))->shard(0);
  data = around_own_means(published, std::move(data), {own});
  auto partition = std::make_shared<const OneClient>(spec.data.clients, client, own);
  if (published.evaluation() && partition->shard(client).test.size(0) < published.evaluation()->records) {
    fail_user("{}: the federation declares that everybody holds out {} records or more, and here are {}",
              data->dataset.name, published.evaluation()->records, partition->shard(client).test.size(0));
  }
  return Setup(std::make_shared<const Parts>(Parts{published, std::move(data), std::move(partition)}));
}

Setup Setup::without_records(const PublicSetup& published) {
  const methods::PublicFacts& facts = published.facts();
  std::vector<int64_t> none = facts.task.record_shape;
  none.insert(none.begin(), 0);
  const at::ScalarType type = facts.kind == data::Kind::kImages     ? at::kByte
                              : facts.kind == data::Kind::kFeatures ? at::kFloat
                                                                    : at::kLong;
  const data::Records empty{
      .x = at::empty(none, type), .y = at::empty({0}, at::kLong), .domain = at::empty({0}, at::kLong), .texts = {}};
  auto data = std::make_shared<models::TaskData>();
  data->dataset = {.name = published.spec().data.name,
                   .kind = facts.kind,
                   .class_names = facts.class_names,
                   .domain_names = {"declared"},
                   .train = empty,
                   .test = empty};
  data->task = facts.task;
  data->feature_blocks = facts.feature_blocks;
  const at::Tensor nobody = at::empty({0}, at::kLong);
  auto partition =
      std::make_shared<const OneClient>(published.spec().data.clients, 0, data::Shard{.train = nobody, .test = nobody});
  return Setup(std::make_shared<const Parts>(Parts{published, std::move(data), std::move(partition)}));
}

Setup Setup::with_records(data::Records train) const {
  auto parts = std::make_shared<Parts>(*parts_);
  auto data = std::make_shared<models::TaskData>(*parts_->data);
  data->dataset.train = std::move(train);
  parts->data = data;
  parts->as_loaded = std::move(data);
  return Setup(std::shared_ptr<const Parts>(std::move(parts)));
}

methods::ClientFacts Setup::facts_of(int64_t client) const {
  return published().facts_of(client, partition().shard(client).size());
}

methods::ReleasePlan Setup::plan_for(int64_t client) const {
  return published().plan_for(facts_of(client));
}

}  // namespace sotto::federation

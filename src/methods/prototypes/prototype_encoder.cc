#include "methods/prototypes/prototype_encoder.h"

#include "base/error.h"
#include "methods/parts/requirements.h"
#include "models/task_data.h"
#include "privacy/ledger.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace sotto::methods {
namespace {

const std::vector<std::vector<int64_t>>& four_heads() {
  static const std::vector<std::vector<int64_t>> heads = {{512}, {512, 256}, {512, 256, 128}, {1024, 512}};
  return heads;
}

}  // namespace

std::vector<PrototypeModelOptions> kinds_of(const PublicContext& context, const PrototypeMember& member) {
  PrototypeModelOptions model;
  model.encoder = context.spec.model;
  model.width = member.options.width;
  model.hidden = member.options.head;
  model.trained_projection = member.options.trained_projection;
  model.prior = member.options.prior;
  const auto& blocks = context.facts.feature_blocks;
  const size_t count =
      std::max(blocks.size() > 1 ? blocks.size() : 1, member.options.heads == Heads::kFour ? size_t{4} : 1);
  std::vector<PrototypeModelOptions> kinds;
  for (size_t i = 0; i < count; ++i) {
    PrototypeModelOptions kind = model;
    if (member.options.heads == Heads::kFour) kind.hidden = four_heads()[i % 4];
    if (blocks.size() > 1) {
      for (size_t b = 0; b < i % blocks.size(); ++b) kind.first_column += blocks[b];
      kind.columns = blocks[i % blocks.size()];
    }
    kinds.push_back(std::move(kind));
  }
  return kinds;
}

std::vector<data::DataOptions> public_records(const RunSettings& spec, const PrototypeOptions& options) {
  if (options.encoder != EncoderTraining::kPublic) return {};
  data::DataOptions data = spec.data;
  data.name = options.public_data;
  data.otherwise.clear();
  data.path.clear();
  data.schema = {};
  data.domains.clear();
  return {data};
}

NamedTensors publicly_trained(const PublicContext& context, const PrototypeModelOptions& model,
                              const PrototypeOptions& options) {
  const data::DataOptions data = public_records(context.spec, options).front();
  const models::TaskData records = models::load_task_data(data, context.spec.model, context.spec.seed);
  if (records.task.record_shape != context.facts.task.record_shape) {
    fail_user("method.public_data: records of '{}' do not have the shape of the clients' records", options.public_data);
  }
  LocalTrainer trainer(context, std::make_shared<PrototypeModel>(model, records.task, context.spec.seed));
  data::Shard all;
  all.train = at::arange(records.dataset.train.size(), at::kLong);
  privacy::Ledger nothing_private;
  for (int64_t epoch = 0; epoch < options.public_epochs; ++epoch) {
    trainer.train(records.dataset.train, all,
                  {.seed = context.spec.seed, .release = {.ledger = nothing_private, .round = epoch}});
  }
  NamedTensors trained;
  for (auto& parameter : trainer.model().state()) {
    if (parameter.name.starts_with("encoder.") || parameter.name.starts_with("projection."))
      trained.push_back(parameter);
  }
  return clone(trained);
}

NoisyEncoder::NoisyEncoder(const PublicContext& context, const PrototypeModelOptions& options)
    : trainer(context, std::make_shared<PrototypeModel>(options, context.facts.task, context.spec.seed)),
      descent(trainer.model(), trainer.flat()),
      initial(clone(trainer.shared())) {
  require_separate_records(trainer.model());
}

privacy::DescentPlan encoder_plan(const RunSettings& spec, const PrototypeOptions& options, const ReleasePrices& prices,
                                  const ClientFacts& client) {
  privacy::DescentPlan plan;
  plan.records = client.records;
  plan.batch = spec.federation.batch;
  plan.epochs = spec.federation.local_epochs;
  plan.clip = options.encoder_clip;
  plan.neighbours = spec.privacy->neighbours();
  plan.noise_multiplier = prices.encoder_multiplier(client, plan.touches());
  return plan;
}

privacy::Channel encoder_channel(const privacy::NoisyDescent& descent, const privacy::DescentPlan& plan,
                                 const ReleasePrices& prices, const ClientFacts& client) {
  return descent.channel(plan, kEncoder).times(prices.releases(client), prices.how_often());
}

}  // namespace sotto::methods

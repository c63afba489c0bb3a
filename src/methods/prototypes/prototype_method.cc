#include "base/error.h"
#include "methods/local_trainer.h"
#include "methods/options.h"
#include "methods/prototypes/clustering.h"
#include "methods/prototypes/dimension_score.h"
#include "methods/prototypes/framework.h"
#include "methods/prototypes/losses.h"
#include "methods/prototypes/prototype_model.h"
#include "methods/requirements.h"
#include "privacy/dpsgd/noisy_descent.h"
#include "privacy/ledger.h"

#include <ATen/ATen.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

namespace sotto::methods {
namespace {

constexpr const char* kAnchors = "anchors";
constexpr const char* kCentre = "centre";
constexpr const char* kOwnCentre = "state.centre";
constexpr const char* kReleased = "state.released";
constexpr const char* kCentred = "state.centred";
constexpr const char* kDimensionsKept = "state.dimensions";
constexpr const char* kKind = "state.kind";
constexpr const char* kEncoder = "encoder";
constexpr const char* kEncoderPrefix = "encoder:";
constexpr const char* kTeacherPrefix = "teacher.";
constexpr int64_t kFeatureBatch = 1024;

struct Options {
  ReleaseOptions release;
  int64_t width = 512;
  std::vector<int64_t> head = {512};
  std::string heads = "same";  // same, or HtC4's four in turn
  bool dcr = false;
  double gamma = 0.05;
  double beta = 0.999;
  double tau = 4.0;
  double distill = 0.05;  // λ₁
  int64_t anchors = 2;
  double cluster_rate = 0.1;
  bool shrink = false;
  bool normalise = false;   // features are scaled to length R, wherever they are used
  bool prior = false;       // the head corrects a nearest-prototype classifier
  bool own_centre = false;  // a client's head sees features around the client's own mean
  bool diagnostics = false;
  std::string encoder = "frozen";  // sound: frozen, dp-sgd, public
  double encoder_clip = 1.0;
  std::string public_data;
  int64_t public_epochs = 10;
};

Options read_options(config::Section& section) {
  Options o;
  o.release = read_release_options(section);
  o.width = section.integer("width", o.width, config::at_least(1));
  o.head = section.integers("head", o.head, config::at_least(1));
  o.heads = section.one_of("heads", o.heads, {"same", "four"});
  o.dcr = section.boolean("dcr", o.dcr);
  o.gamma = section.number("gamma", o.gamma, config::kPositive);
  o.beta = section.number("beta", o.beta, {.low = 0.0, .high = 1.0, .high_excluded = true});
  o.tau = section.number("tau", o.tau, config::kPositive);
  o.distill = section.number("distill", o.distill, config::kNonNegative);
  o.anchors = section.integer("anchors", o.anchors, config::between(1, 64));
  o.cluster_rate = section.number("cluster_rate", o.cluster_rate, {.low = 0.0, .high = 1.0, .low_excluded = true});
  o.shrink = section.boolean("shrink", o.shrink);
  o.normalise = section.boolean("normalise", o.normalise);
  o.prior = section.boolean("prior", o.prior);
  o.own_centre = section.boolean("own_centre", o.own_centre);
  o.diagnostics = section.boolean("diagnostics", o.diagnostics);
  o.encoder = section.one_of("encoder", o.encoder, {"frozen", "dp-sgd", "public"});
  const double share =
      section.number("encoder_share", 0.5, {.low = 0.0, .high = 1.0, .low_excluded = true, .high_excluded = true});
  if (o.encoder == "dp-sgd") o.release.encoder_share = share;
  o.encoder_clip = section.number("encoder_clip", o.encoder_clip, config::kPositive);
  o.public_data = section.text("public_data", "");
  o.public_epochs = section.integer("public_epochs", o.public_epochs, config::at_least(1));
  return o;
}

const std::vector<std::vector<int64_t>>& four_heads() {
  static const std::vector<std::vector<int64_t>> heads = {{512}, {512, 256}, {512, 256, 128}, {1024, 512}};
  return heads;
}

// A method under its config.
struct Member {
  Options options;
  std::unique_ptr<Framework> framework;
  bool printed = false;

  bool clusters() const { return framework->local() != LocalPrototypes::kMeans; }

  // Sound cells beyond one per class belong to frameworks that cluster.
  PrototypeShape shape(const MethodContext& context) const {
    return {options.width, context.data.dataset.classes(), clusters() && !printed ? options.anchors : 1};
  }
};

Member member_of(const config::RunSpec& spec, FrameworkReader read) {
  Member member;
  options_of(spec, [&](config::Section& section) {
    member.options = read_options(section);
    member.framework = read(section);
    return 0;
  });
  member.printed = spec.variant == "paper";
  const Options& o = member.options;
  if (o.encoder != "frozen" && (member.printed || !o.release.noisy())) {
    fail_user(
        "method.encoder: the printed encoder is trained without noise, and so is one whose releases have none; leave "
        "it out");
  }
  if (o.encoder == "dp-sgd" && o.release.centre) {
    fail_user("method.centre: the encoder that is trained with noise moves; leave one of them out");
  }
  if (o.encoder == "public" && o.public_data.empty()) {
    fail_user(
        "method.public_data: encoder = \"public\" needs the name of a public dataset, as `sotto data list` knows it");
  }
  if (member.printed && member.options.shrink) {
    fail_user("method.shrink: the paper's server does not know the noise; leave it out, or set variant = \"sound\"");
  }
  return member;
}

PrototypeRelease release_of(const MethodContext& context, const Member& member) {
  return {context, member.options.release, member.shape(context), member.clusters()};
}

// The directions that a class's records are parted by before there are global prototypes: [anchors, d].
at::Tensor public_directions(const PrototypeShape& shape, uint64_t seed) {
  RandomStream stream(seed, "public-anchors");
  return at::empty({shape.anchors, shape.width}).normal_(0, 1, stream.torch_generator());
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// How many kinds of client there are, and what each kind's model is.
std::vector<PrototypeModelOptions> kinds_of(const MethodContext& context, const Member& member) {
  PrototypeModelOptions model;
  model.encoder = context.spec.model;
  model.width = member.options.width;
  model.hidden = member.options.head;
  model.trained_projection = member.printed;
  model.prior = member.options.prior;
  const auto& blocks = context.data.feature_blocks;
  const size_t count = std::max(blocks.size() > 1 ? blocks.size() : 1, member.options.heads == "four" ? size_t{4} : 1);
  std::vector<PrototypeModelOptions> kinds;
  for (size_t i = 0; i < count; ++i) {
    PrototypeModelOptions kind = model;
    if (member.options.heads == "four") kind.hidden = four_heads()[i % 4];
    if (blocks.size() > 1) {
      for (size_t b = 0; b < i % blocks.size(); ++b) kind.first_column += blocks[b];
      kind.columns = blocks[i % blocks.size()];
    }
    kinds.push_back(std::move(kind));
  }
  return kinds;
}

// All parts of an encoder as they come out of training on public records: nothing of it is private.
NamedTensors publicly_trained(const MethodContext& context, const PrototypeModelOptions& model,
                              const Options& options) {
  config::DataOptions data = context.spec.data;
  data.name = options.public_data;
  data.otherwise.clear();
  data.path.clear();
  data.domains.clear();
  const models::TaskData records = models::load_task_data(data, context.spec.model, context.spec.seed);
  if (records.task.record_shape != context.data.task.record_shape) {
    fail_user("method.public_data: records of '{}' do not have the shape of the clients' records", options.public_data);
  }
  LocalTrainer trainer({context.spec, records, context.participations, context.least_records},
                       std::make_shared<PrototypeModel>(model, records.task, context.spec.seed));
  data::Shard all;
  all.train = at::arange(records.dataset.train.size(), at::kLong);
  privacy::Ledger nothing_private;
  for (int64_t epoch = 0; epoch < options.public_epochs; ++epoch) {
    trainer.train(all, {context.spec.seed, {.ledger = nothing_private, .round = epoch}});
  }
  NamedTensors trained;
  for (auto& parameter : trainer.model().state()) {
    if (parameter.name.starts_with("encoder.") || parameter.name.starts_with("projection."))
      trained.push_back(parameter);
  }
  return clone(trained);
}

void adopt(models::Model& model, const NamedTensors& weights) {
  const at::NoGradGuard no_grad;
  for (auto& [name, value] : model.state()) {
    const at::Tensor given = find_tensor(weights, name);
    if (given.defined() && given.sizes() == value.sizes()) value.copy_(given);
  }
}

// An encoder that is trained with DP-SGD; every client has one of its own.
struct NoisyEncoder {
  NoisyEncoder(const MethodContext& context, const PrototypeModelOptions& options)
      : trainer(context, std::make_shared<PrototypeModel>(options, context.data.task, context.spec.seed)),
        descent(trainer.model(), trainer.flat()),
        initial(clone(trainer.shared())) {
    require_no_batch_statistics(trainer.model());
  }

  LocalTrainer trainer;
  privacy::NoisyDescent descent;
  NamedTensors initial;
};

privacy::DescentPlan encoder_plan(const config::RunSpec& spec, const Options& options, const PrototypeRelease& release,
                                  const ClientFacts& client) {
  privacy::DescentPlan plan;
  plan.records = client.records;
  plan.batch = spec.federation.batch;
  plan.epochs = spec.federation.local_epochs;
  plan.clip = options.encoder_clip;
  plan.neighbours = privacy::neighbours_of(*spec.privacy);
  plan.noise_multiplier = release.encoder_multiplier(client, plan.touches());
  return plan;
}

// One kind of client: its model, the model as it was at the start, and the teacher of its head.
class Personal {
 public:
  Personal(const MethodContext& context, const PrototypeModelOptions& options, const NamedTensors& start)
      : model_(std::make_shared<PrototypeModel>(options, context.data.task, context.spec.seed)),
        frozen_(std::make_shared<PrototypeModel>(options, context.data.task, context.spec.seed)),
        trainer_(context, model_),
        teacher_(model_->copy_of_head()),
        kept_(trainer_.shared()) {
    frozen_->eval();
    adopt(*model_, start);
    adopt(*frozen_, start);
    for (const auto& parameter : trainer_.personal()) kept_.push_back(parameter);
    for (const auto& parameter : teacher_->named_parameters()) {
      kept_.push_back({kTeacherPrefix + parameter.key(), parameter.value()});
    }
    initial_ = clone(kept_);
  }

  LocalTrainer& trainer() { return trainer_; }
  PrototypeModel& model() { return *model_; }
  Head& teacher() { return *teacher_; }

  void load(const privacy::PrivateState& state) {
    for (size_t i = 0; i < kept_.size(); ++i) {
      const at::Tensor kept = find_tensor(state.values(), kept_[i].name);
      kept_[i].value.detach().copy_(kept.defined() ? kept : initial_[i].value);
    }
  }

  NamedTensors kept() const { return clone(kept_); }

  // Features that no private record has had a part in making.
  at::Tensor untouched_features(const at::Tensor& x) {
    const at::NoGradGuard no_grad;
    return frozen_->features(x);
  }

 private:
  std::shared_ptr<PrototypeModel> model_, frozen_;
  LocalTrainer trainer_;
  std::shared_ptr<Head> teacher_;
  NamedTensors kept_;
  NamedTensors initial_;
};

class Client : public ClientMethod {
 public:
  Client(const MethodContext& context, Member member)
      : spec_(context.spec),
        dataset_(context.data.dataset),
        member_(std::move(member)),
        shape_(member_.shape(context)),
        release_(release_of(context, member_)) {
    for (PrototypeModelOptions kind : kinds_of(context, member_)) {
      const bool is_public = member_.options.encoder == "public";
      kinds_.push_back(std::make_unique<Personal>(
          context, kind, is_public ? publicly_trained(context, kind, member_.options) : NamedTensors()));
      kind.prior = false;
      encoders_.push_back(member_.options.encoder == "dp-sgd" ? std::make_unique<NoisyEncoder>(context, kind)
                                                              : nullptr);
    }
    selected_ = kinds_.front().get();
  }

  StepResult step(const Broadcast& broadcast, const data::Shard& shard, privacy::PrivateState& state,
                  const StepContext& context) override {
    const int64_t kind = context.release.client % static_cast<int64_t>(kinds_.size());
    Personal& mine = *kinds_[static_cast<size_t>(kind)];
    mine.load(state);
    load_encoder(kind, state);
    StepResult result;
    const auto begin = std::chrono::steady_clock::now();
    const at::Tensor own_centre = own_centre_of(mine, shard);
    result.report = train(mine, broadcast.values, own_centre, shard, context);
    if (result.report.diverged) {
      if (!upload_is_apart()) return result;
      // What is sent does not come from this training, and whether it is sent must not either.
      result.report = {};
      result.report.measures["diverged"] = 1;
      mine.load(state);
    }
    result.report.measures["training_seconds"] = seconds_since(begin);

    NamedTensors kept = mine.kept();
    kept.push_back({kKind, at::scalar_tensor(kind, at::kLong)});
    if (own_centre.defined()) kept.push_back({kOwnCentre, own_centre});
    const auto happened = [&](const char* name) { return find_tensor(state.values(), name).defined(); };
    const auto remember = [&](const char* name) { kept.push_back({name, at::ones({}, at::kLong)}); };
    at::Tensor dimensions = find_tensor(state.values(), kDimensionsKept);
    const bool centre = release_.options().centre && !find_tensor(broadcast.values, kCentre).defined();
    bool released = happened(kReleased), centred = happened(kCentred);
    if (release_.options().silent()) {
      // nothing leaves
    } else if (centre && !centred) {
      centred = true;
      send_centre(mine, shard, context, result);
    } else if (!centre && !(release_.options().once && released)) {
      released = true;
      train_encoder(shard, context);
      dimensions = send(mine, broadcast.values, shard, dimensions, context, result);
    }
    if (noisy_ != nullptr) {
      for (const auto& [name, value] : clone(noisy_->trainer.shared())) kept.push_back({kEncoderPrefix + name, value});
    }
    if (released) remember(kReleased);
    if (centred) remember(kCentred);
    if (dimensions.defined()) kept.push_back({kDimensionsKept, dimensions});
    state = privacy::PrivateState(std::move(kept));
    return result;
  }

  void select(const Broadcast& broadcast, const privacy::PrivateState& state) override {
    global_ = find_prototypes(broadcast.values, kGlobal);
    centre_ = find_tensor(broadcast.values, kCentre);
    own_centre_ = find_tensor(state.values(), kOwnCentre);
    const at::Tensor kind = find_tensor(state.values(), kKind);
    selected_ = kinds_[kind.defined() ? static_cast<size_t>(kind.item<int64_t>()) : 0].get();
    selected_->load(state);
  }

  at::Tensor predict(const at::Tensor& x) override {
    const at::NoGradGuard no_grad;
    const at::Tensor z = selected_->trainer().features(x);
    return logits(selected_->model(), bounded(for_head(z, centre_, own_centre_)), bounded(placed(z, centre_)), global_);
  }

  at::Tensor features(const at::Tensor& x) override { return placed(selected_->trainer().features(x), centre_); }

  NamedTensors selected_weights() const override { return selected_->trainer().model().state(); }

 private:
  bool upload_is_apart() const { return !member_.printed && release_.options().noisy(); }

  // In the space of the prototypes: around the centre, if there is one, and of one length, if that is asked for.
  at::Tensor placed(const at::Tensor& features, const at::Tensor& centre) const {
    const at::Tensor alike = of_one_length(features);
    return centre.defined() ? of_one_length(alike - centre) : alike;
  }

  at::Tensor of_one_length(const at::Tensor& features) const {
    return member_.options.normalise ? soft_clip(features, member_.options.release.radius, 1e-6) : features;
  }

  // As the client's head sees them, which nobody else does: around the client's own mean, if that is asked for.
  at::Tensor for_head(const at::Tensor& features, const at::Tensor& centre, const at::Tensor& own_centre) const {
    return placed(features, own_centre.defined() ? own_centre : centre);
  }

  at::Tensor bounded(const at::Tensor& features) const {
    const Options& o = member_.options;
    return o.dcr ? soft_clip(features, o.release.radius, o.gamma) : features;
  }

  at::Tensor logits(PrototypeModel& model, const at::Tensor& for_head, const at::Tensor& features,
                    const PrototypeSet& global) const {
    const at::Tensor answer = model.classify(for_head);
    if (!member_.options.prior || global.empty()) return answer;
    return answer + model.prior_scale() * prototype_prior(features, global, shape_.classes);
  }

  // The mean of the client's records, which stays with it. Undefined without records, or if it is not asked for.
  at::Tensor own_centre_of(Personal& mine, const data::Shard& shard) const {
    if (!member_.options.own_centre || shard.size() == 0) return {};
    return placed_records(mine, {}, shard).values.mean(0);
  }

  LocalReport train(Personal& mine, const NamedTensors& broadcast, const at::Tensor& own_centre,
                    const data::Shard& shard, const StepContext& context) const {
    const Options& o = member_.options;
    const Framework& framework = *member_.framework;
    const PrototypeSet global = find_prototypes(broadcast, kGlobal);
    const at::Tensor centre = find_tensor(broadcast, kCentre);
    at::Tensor norms = at::zeros({}, at::kDouble), gaps = at::zeros({}, at::kDouble);
    const auto loss = [&](const data::Batch& batch) {
      const at::Tensor made = mine.model().features(batch.x);
      const at::Tensor z = placed(made, centre), h = for_head(made, centre, own_centre);
      const auto part = [&](const at::Tensor& features) {
        return bounded(framework.head_is_apart() ? features.detach() : features);
      };
      LocalBatch local;
      local.features = bounded(z);
      local.logits = logits(mine.model(), part(h), part(z), global);
      local.labels = batch.y;
      if (framework.uses_source()) {
        local.source = member_.printed ? z.detach() : placed(source_features(mine, batch.x), centre);
      }
      at::Tensor total = framework.loss(local, broadcast);
      if (o.diagnostics) norms += z.detach().norm(2, 1).sum().to(at::kDouble);
      if (!o.dcr) return total;
      at::Tensor taught;
      {
        const at::NoGradGuard no_grad;
        taught = mine.teacher().forward(h.detach());
      }
      if (o.diagnostics) gaps += (taught - local.logits.detach()).norm(2, 1).sum().to(at::kDouble);
      return total + o.distill * distillation(taught, local.logits, o.tau);
    };
    const auto follow_student = [&] { follow(mine.teacher(), mine.model().head(), o.beta); };
    LocalReport report =
        mine.trainer().descend(shard, context, loss, {}, o.dcr ? follow_student : std::function<void()>());
    if (o.diagnostics && report.samples > 0) {
      report.measures["feature_norm"] = norms.item<double>() / static_cast<double>(report.samples);
      if (o.dcr) report.measures["teacher_gap"] = gaps.item<double>() / static_cast<double>(report.samples);
    }
    return report;
  }

  ClientFacts facts_of(const data::Shard& shard, const privacy::ReleaseContext& terms) const {
    return {.records = shard.size(),
            .participations = terms.participations,
            .epsilon = spec_.privacy ? spec_.privacy->budget_of(terms.client) : 0.0};
  }

  // A process that died between a release for the whole run and the end of the round has paid for it already.
  void send_centre(Personal& mine, const data::Shard& shard, const StepContext& context, StepResult& result) const {
    try {
      auto made = release_.release_centre(placed_records(mine, {}, shard).values, facts_of(shard, context.release),
                                          context.release);
      result.upload = std::move(made.upload);
      result.report.noise = made.noise;
    } catch (const privacy::BudgetSpent&) {
    }
  }

  // Makes the upload, if the client can pay for it. The dimensions to remember.
  at::Tensor send(Personal& mine, const NamedTensors& broadcast, const data::Shard& shard, const at::Tensor& remembered,
                  const StepContext& context, StepResult& result) const {
    const auto begin = std::chrono::steady_clock::now();
    const privacy::ReleaseContext& terms = context.release;
    const ClientFacts facts = facts_of(shard, terms);
    const LabelledFeatures records = records_of(mine, broadcast, shard, context);
    const PrototypeSet global = find_prototypes(broadcast, kGlobal);
    try {
      PrototypeRelease::Result made = release_.release(records, global, remembered, facts, terms);
      result.upload = std::move(made.upload);
      result.report.noise = made.noise;
      result.report.measures["prototype_seconds"] = seconds_since(begin);
      if (member_.options.diagnostics) diagnose(records, made.dimensions, result.report);
      return made.dimensions;
    } catch (const privacy::BudgetSpent&) {
      if (!release_.options().once) throw;
      return remembered;
    }
  }

  void diagnose(const LabelledFeatures& records, const at::Tensor& dimensions, LocalReport& report) const {
    const at::Tensor scores = dimension_scores(records.values, records.labels, shape_.classes);
    if (scores.max().item<double>() > 0) {
      report.measures["score_information"] =
          rank_correlation(scores, mutual_information(records.values, records.labels, shape_.classes));
    }
    if (!dimensions.defined()) return;
    const at::Tensor best = largest(scores, dimensions.numel());
    report.measures["best_dimensions_found"] = at::isin(dimensions, best).to(at::kDouble).mean().item<double>();
  }

  // The noisy encoder as it was left, if there is one.
  void load_encoder(int64_t kind, const privacy::PrivateState& state) {
    noisy_ = encoders_[static_cast<size_t>(kind)].get();
    if (noisy_ == nullptr) return;
    NamedTensors& weights = noisy_->trainer.shared();
    for (size_t i = 0; i < weights.size(); ++i) {
      const at::Tensor earlier = find_tensor(state.values(), kEncoderPrefix + weights[i].name);
      weights[i].value.detach().copy_(earlier.defined() ? earlier : noisy_->initial[i].value);
    }
  }

  // Its own training, before its features are released.
  void train_encoder(const data::Shard& shard, const StepContext& context) {
    if (noisy_ == nullptr) return;
    const ClientFacts facts = facts_of(shard, context.release);
    const privacy::DescentPlan plan = encoder_plan(spec_, member_.options, release_, facts);
    privacy::Receipt receipt =
        context.release.ledger.spend(noisy_->descent.event(plan, context.release, kEncoder), release_.releases(facts));
    noisy_->trainer.with_optimizer(context, [&](const std::function<void()>& update) {
      noisy_->descent.run(plan, std::move(receipt), dataset_.train, shard.train, context.release, update);
    });
  }

  // The features that prototypes are made of.
  at::Tensor source_features(Personal& mine, const at::Tensor& x) const {
    if (member_.printed) return mine.trainer().features(x);
    return noisy_ != nullptr ? noisy_->trainer.features(x) : mine.untouched_features(x);
  }

  // All records of the client and their labels; in no cells yet.
  LabelledFeatures placed_records(Personal& mine, const at::Tensor& centre, const data::Shard& shard) const {
    std::vector<at::Tensor> values = {at::empty({0, shape_.width})}, labels = {at::empty({0}, at::kLong)};
    data::Batch batch;
    for (int64_t begin = 0; begin < shard.size(); begin += kFeatureBatch) {
      data::gather(dataset_.train, shard.train.narrow(0, begin, std::min(kFeatureBatch, shard.size() - begin)), batch);
      values.push_back(placed(source_features(mine, batch.x), centre));
      labels.push_back(batch.y.clone());
    }
    LabelledFeatures records;
    records.values = at::cat(values);
    records.labels = at::cat(labels);
    return records;
  }

  LabelledFeatures records_of(Personal& mine, const NamedTensors& broadcast, const data::Shard& shard,
                              const StepContext& context) const {
    LabelledFeatures records = placed_records(mine, find_tensor(broadcast, kCentre), shard);
    if (!member_.clusters() || shard.size() == 0) {
      records.cells = records.labels;
    } else if (member_.printed || !release_.options().noisy()) {
      records.cells = cluster_within_classes(records, context);
    } else {
      records.cells = cells_around_anchors(records, broadcast);
    }
    return records;
  }

  at::Tensor cluster_within_classes(const LabelledFeatures& records, const StepContext& context) const {
    RandomStream stream = context.stream("clusters");
    at::Tensor cells = at::zeros_like(records.labels);
    int64_t next = 0;
    for (int64_t c = 0; c < shape_.classes; ++c) {
      const at::Tensor rows = records.labels.eq(c).nonzero().squeeze(1);
      if (rows.numel() == 0) continue;
      const at::Tensor own = records.values.index_select(0, rows);
      const auto k = static_cast<int64_t>(std::ceil(member_.options.cluster_rate * static_cast<double>(rows.numel())));
      const at::Tensor labels =
          member_.framework->local() == LocalPrototypes::kFinch ? finch(own) : k_means(own, k, stream);
      cells.index_copy_(0, rows, labels + next);
      next += cluster_count(labels);
    }
    return cells;
  }

  // A record moves nothing but the sums of the cell it is in: anchors are public.
  at::Tensor cells_around_anchors(const LabelledFeatures& records, const NamedTensors& broadcast) const {
    if (shape_.anchors == 1) return records.labels;
    at::Tensor anchors = find_tensor(broadcast, kAnchors);  // [C, anchors, d]
    if (!anchors.defined()) {
      anchors = public_directions(shape_, spec_.seed).unsqueeze(0).expand({shape_.classes, -1, -1});
    }
    const at::Tensor directions = anchors / anchors.norm(2, 2, true).clamp_min(1e-8);
    at::Tensor nearest = at::zeros_like(records.labels);
    for (int64_t c = 0; c < shape_.classes; ++c) {
      const at::Tensor rows = records.labels.eq(c).nonzero().squeeze(1);
      if (rows.numel() == 0) continue;
      nearest.index_copy_(0, rows, records.values.index_select(0, rows).mm(directions[c].t()).argmax(1));
    }
    return records.labels * shape_.anchors + nearest;
  }

  const config::RunSpec& spec_;
  const data::Dataset& dataset_;
  Member member_;
  PrototypeShape shape_;
  PrototypeRelease release_;
  std::vector<std::unique_ptr<Personal>> kinds_;
  std::vector<std::unique_ptr<NoisyEncoder>> encoders_;  // one a kind, or null
  NoisyEncoder* noisy_ = nullptr;                        // of the client whose step this is
  Personal* selected_ = nullptr;
  PrototypeSet global_;  // of the broadcast that was selected
  at::Tensor centre_, own_centre_;
};

class Server : public ServerMethod {
 public:
  Server(const MethodContext& context, Member member)
      : member_(std::move(member)), seed_(context.spec.seed), shape_(member_.shape(context)) {
    const PrototypeRelease release = release_of(context, member_);
    noise_ = release.noise_scale();
    centre_noise_ = release.centre_noise_scale();
  }

  Broadcast open() override { return current_; }

  void accept(const privacy::Upload& upload) override {
    const CentreSums centre = centre_of(upload.values());
    if (centre.sum.defined()) {
      centre_sum_ = centre_sum_.defined() ? centre_sum_ + centre.sum : centre.sum.clone();
      centre_count_ += centre.count;
      ++centre_members_;
      return;
    }
    sets_.push_back(prototypes_of(upload.values(), shape_, noise_.count));
    fresh_ = true;
  }

  Broadcast aggregate(const RoundContext& context) override {
    current_.round = context.round();
    if (centre_members_ > 0) place_centre();
    if (!fresh_) return current_;
    const at::Tensor centre = find_tensor(current_.values, kCentre);
    const GeneratorContext terms{shape_, noise_, noise_.count, seed_, context.round()};
    const auto& options = member_.options;
    current_.values = member_.framework->generate(options.shrink ? shrunk(sets_, terms) : sets_, terms);
    if (centre.defined()) current_.values.push_back({kCentre, centre});
    if (shape_.anchors > 1 && !options.release.once) current_.values.push_back({kAnchors, next_anchors()});
    if (!options.release.once) sets_.clear();
    fresh_ = false;
    return current_;
  }

  // One release stands for the whole run: what has come in is kept.
  NamedTensors state() const override {
    NamedTensors values;
    for (size_t i = 0; i < sets_.size(); ++i) append(values, fmt::format("set.{}", i), sets_[i]);
    return values;
  }

  void restore(const Broadcast& last, const NamedTensors& state) override {
    current_ = last;
    sets_.clear();
    for (size_t i = 0;; ++i) {
      PrototypeSet set = find_prototypes(state, fmt::format("set.{}", i));
      if (set.empty()) break;
      sets_.push_back(std::move(set));
    }
  }

 private:
  // As far as the noise leaves it to be trusted.
  void place_centre() {
    const double members = static_cast<double>(centre_members_);
    const double count = std::max(centre_count_, std::sqrt(members) * std::max(centre_noise_.count, 1.0));
    const at::Tensor mean = centre_sum_ / count;
    const double noise = static_cast<double>(shape_.width) * members * std::pow(centre_noise_.sum / count, 2);
    const double trust = std::max(0.0, 1 - noise / std::max(mean.square().sum().item<double>(), 1e-30));
    current_.values.push_back({kCentre, mean * trust});
    centre_sum_ = at::Tensor();
    centre_count_ = 0;
    centre_members_ = 0;
  }

  // The heaviest global prototypes of each class; public directions where there are too few.
  at::Tensor next_anchors() const {
    const PrototypeSet global = find_prototypes(current_.values, kGlobal);
    at::Tensor anchors = public_directions(shape_, seed_).unsqueeze(0).repeat({shape_.classes, 1, 1});
    if (global.empty()) return anchors;
    for (int64_t c = 0; c < shape_.classes; ++c) {
      const PrototypeSet own = global.where(global.classes.eq(c));
      const int64_t count = std::min(own.size(), shape_.anchors);
      if (count == 0) continue;
      anchors[c].narrow(0, 0, count).copy_(own.values.index_select(0, std::get<1>(own.weights.topk(count))));
    }
    return anchors;
  }

  Member member_;
  uint64_t seed_;
  PrototypeShape shape_;
  NoiseScale noise_, centre_noise_;
  at::Tensor centre_sum_;
  double centre_count_ = 0;
  int64_t centre_members_ = 0;
  std::vector<PrototypeSet> sets_;
  bool fresh_ = false;
  Broadcast current_;
};

ReleasePlan plan(const MethodContext& context, const ClientFacts& client, const Member& member) {
  const PrototypeRelease release = release_of(context, member);
  ReleasePlan plan = release.plan(client);
  if (member.options.encoder != "dp-sgd") return plan;
  const NoisyEncoder encoder(context, kinds_of(context, member).front());
  const privacy::DescentPlan descent = encoder_plan(context.spec, member.options, release, client);
  privacy::Ledger unused;
  plan.push_back({.event = encoder.descent.event(descent, {.ledger = unused}, kEncoder),
                  .how_often = plan.front().how_often,
                  .times = plan.front().times,
                  .coordinates = encoder.descent.coordinates(descent)});
  return plan;
}

}  // namespace

MethodEntry prototype_method(std::string name, std::string what, std::string citation, FrameworkReader read) {
  const auto member = [read](const MethodContext& context) { return member_of(context.spec, read); };
  return {.name = std::move(name),
          .what = std::move(what),
          .citation = std::move(citation),
          .read_options =
              [read](config::Section& section) {
                read_options(section);
                read(section);
              },
          .plan = [member](const MethodContext& context,
                           const ClientFacts& client) { return plan(context, client, member(context)); },
          .personal = [](const config::RunSpec&) { return true; },
          .global = [](const config::RunSpec&) { return false; },
          .make_client = [member](const MethodContext& context) -> std::unique_ptr<ClientMethod> {
            return std::make_unique<Client>(context, member(context));
          },
          .make_server = [member](const MethodContext& context) -> std::unique_ptr<ServerMethod> {
            return std::make_unique<Server>(context, member(context));
          }};
}

}  // namespace sotto::methods

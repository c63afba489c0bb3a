#include "methods/prototypes/prototype_client.h"

#include "methods/prototypes/clustering.h"
#include "methods/prototypes/dimension_score.h"
#include "methods/prototypes/losses.h"
#include "methods/prototypes/prepared_records.h"
#include "methods/prototypes/prototype_encoder.h"
#include "privacy/dpsgd/slots.h"
#include "privacy/ledger.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <vector>

namespace sotto::methods {
namespace {

constexpr const char* kOwnCentre = "state.centre";
constexpr const char* kReleased = "state.released";
constexpr const char* kCentred = "state.centred";
constexpr const char* kDimensionsKept = "state.dimensions";
constexpr const char* kKind = "state.kind";
constexpr const char* kEncoderPrefix = "encoder:";
constexpr const char* kTeacherPrefix = "teacher.";
constexpr int64_t kFeatureBatch = 1024;

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void adopt(models::Model& model, const NamedTensors& weights) {
  const at::NoGradGuard no_grad;
  for (auto& [name, value] : model.state()) {
    const at::Tensor given = find_tensor(weights, name);
    if (given.defined() && given.sizes() == value.sizes()) value.copy_(given);
  }
}

// One kind of client: its model, the model as it was at the start, and the teacher of its head.
class Personal {
 public:
  // A head without distillation needs no teacher, and one that is kept would be half of every client's state.
  Personal(const ClientContext& context, const PrototypeModelOptions& options, const NamedTensors& start,
           bool is_taught, bool may_prepare)
      : model_(std::make_shared<PrototypeModel>(options, context.facts.task, context.spec.seed)),
        frozen_(std::make_shared<PrototypeModel>(options, context.facts.task, context.spec.seed)),
        trainer_(context, model_),
        teacher_(model_->copy_of_head()),
        kept_(trainer_.shared()) {
    frozen_->eval();
    adopt(*model_, start);
    adopt(*frozen_, start);
    for (const auto& parameter : trainer_.personal()) kept_.push_back(parameter);
    if (is_taught) {
      for (const auto& parameter : teacher_->named_parameters()) {
        kept_.push_back({kTeacherPrefix + parameter.key(), parameter.value()});
      }
    }
    initial_ = clone(kept_);
    if (may_prepare) prepared_ = prepared_records(context.records, *frozen_, context.spec.seed);
    records_ = prepared_ ? prepared_.get() : &context.records;
  }

  // What it trains on: the records, or what the part of the model that no training changes makes of them.
  const data::Records& records() const { return *records_; }

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

  // For features around this centre, or around none.
  privacy::FixedSlots& slots(const at::Tensor& centre) { return centre.defined() ? centred_slots_ : slots_; }

  // The model's features of rows of records().
  at::Tensor features_of(const at::Tensor& rows) { return of_rows(*model_, rows); }
  // The same in evaluation mode, without gradients.
  at::Tensor trained_features_of(const at::Tensor& rows) {
    const at::NoGradGuard no_grad;
    model_->eval();
    return of_rows(*model_, rows);
  }

  // Features that no private record has had a part in making, of rows of records() or of records as they are.
  at::Tensor untouched_features_of(const at::Tensor& rows) {
    const at::NoGradGuard no_grad;
    return of_rows(*frozen_, rows);
  }
  at::Tensor untouched_features(const at::Tensor& x) {
    const at::NoGradGuard no_grad;
    return frozen_->features(x);
  }

 private:
  at::Tensor of_rows(PrototypeModel& model, const at::Tensor& rows) const {
    return prepared_ ? model.finish(rows) : model.features(rows);
  }

  std::shared_ptr<PrototypeModel> model_, frozen_;
  std::shared_ptr<const data::Records> prepared_;  // null: there is nothing to prepare
  const data::Records* records_ = nullptr;
  LocalTrainer trainer_;
  std::shared_ptr<Head> teacher_;
  NamedTensors kept_;
  NamedTensors initial_;
  privacy::FixedSlots slots_, centred_slots_;
};

class Client : public ClientMethod {
 public:
  Client(const ClientContext& context, PrototypeMember member)
      : spec_(context.spec),
        records_(context.records),
        member_(std::move(member)),
        shape_(member_.shape(context)),
        release_(release_of(context, member_)) {
    for (PrototypeModelOptions kind : kinds_of(context, member_)) {
      const bool is_public = member_.options.encoder == EncoderTraining::kPublic;
      kinds_.push_back(std::make_unique<Personal>(
          context, kind, is_public ? publicly_trained(context, kind, member_.options) : NamedTensors(),
          member_.options.dcr, member_.options.encoder != EncoderTraining::kDpSgd));
      kind.prior = false;
      encoders_.push_back(
          member_.options.encoder == EncoderTraining::kDpSgd ? std::make_unique<NoisyEncoder>(context, kind) : nullptr);
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
    const at::Tensor own_centre = own_centre_of(mine, shard, find_tensor(state.values(), kOwnCentre));
    if (trains_in(broadcast)) result.report = train(mine, broadcast.values, own_centre, shard, context);
    if (result.report.diverged) {
      if (!upload_is_apart() && !spec_.privacy) return result;
      // Whether something is sent must not depend on what became of this training.
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
    const bool centre = release_->options().centre && !find_tensor(broadcast.values, kCentre).defined();
    bool released = happened(kReleased), centred = happened(kCentred);
    if (release_->options().silent() || is_closing(context)) {
      // nothing leaves
    } else if (centre && !centred) {
      centred = true;
      send_centre(mine, shard, context, result);
    } else if (!centre && !(release_->options().once && released)) {
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
  // The paper's Algorithm 1 releases, aggregates, then fine-tunes: what a client trains in a round is the end of the
  // round before, and in the first there is none.
  bool trains_in(const Broadcast& broadcast) const {
    return !member_.printed || broadcast.round > 0 || release_->options().silent();
  }
  bool is_closing(const StepContext& context) const {
    return release_->options().closing_round && context.release.round == spec_.rounds;
  }

  bool upload_is_apart() const { return !member_.printed && release_->options().noisy(); }

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
    const PrototypeOptions& o = member_.options;
    return o.dcr ? soft_clip(features, o.release.radius, o.gamma) : features;
  }

  at::Tensor logits(PrototypeModel& model, const at::Tensor& for_head, const at::Tensor& features,
                    const PrototypeSet& global) const {
    const at::Tensor answer = model.classify(for_head);
    if (!member_.options.prior || global.empty()) return answer;
    return answer + model.prior_scale() * prototype_prior(features, global, shape_.classes);
  }

  // The mean of the client's records, which stays with it: the earlier one where features do not move. Undefined
  // without records, or if it is not asked for.
  at::Tensor own_centre_of(Personal& mine, const data::Shard& shard, const at::Tensor& earlier) const {
    if (!member_.options.own_centre || shard.size() == 0) return {};
    if (earlier.defined() && !member_.printed && noisy_ == nullptr) return earlier;
    return placed_records(mine, {}, shard).values.mean(0);
  }

  LocalReport train(Personal& mine, const NamedTensors& broadcast, const at::Tensor& own_centre,
                    const data::Shard& shard, const StepContext& context) const {
    const PrototypeOptions& o = member_.options;
    const Framework& framework = *member_.framework;
    const PrototypeSet global = find_prototypes(broadcast, kGlobal);
    const at::Tensor centre = find_tensor(broadcast, kCentre);
    at::Tensor norms = at::zeros({}, at::kDouble), gaps = at::zeros({}, at::kDouble);
    const auto loss = [&](const data::Batch& batch) {
      const at::Tensor made = mine.features_of(batch.x);
      const at::Tensor z = placed(made, centre), h = for_head(made, centre, own_centre);
      const auto part = [&](const at::Tensor& features) {
        return bounded(framework.head_is_apart() ? features.detach() : features);
      };
      LocalBatch local;
      local.features = bounded(z);
      local.logits = logits(mine.model(), part(h), part(z), global);
      local.labels = batch.y;
      if (framework.uses_source()) {
        local.source = member_.printed ? z.detach() : placed(source_features_of(mine, batch.x), centre);
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
      return total + o.distill * (o.distill_by_tau ? o.tau * o.tau : 1.0) * distillation(taught, local.logits, o.tau);
    };
    const auto follow_student = [&] { follow(mine.teacher(), mine.model().head(), o.beta); };
    LocalReport report = mine.trainer().descend(mine.records(), shard, context, loss, {},
                                                o.dcr ? follow_student : std::function<void()>());
    if (o.diagnostics && report.samples > 0) {
      report.measures["feature_norm"] = norms.item<double>() / static_cast<double>(report.samples);
      if (o.dcr) report.measures["teacher_gap"] = gaps.item<double>() / static_cast<double>(report.samples);
    }
    return report;
  }

  // A process that died between a release for the whole run and the end of the round has paid for it already.
  void send_centre(Personal& mine, const data::Shard& shard, const StepContext& context, StepResult& result) const {
    try {
      auto made = release_->release_centre(placed_records(mine, {}, shard).values, context.own, context.release);
      result.upload = std::move(made.upload);
      result.report.noise_norm = made.noise_norm;
    } catch (const privacy::BudgetSpent&) {
    }
  }

  // Makes the upload, if the client can pay for it. The dimensions to remember.
  at::Tensor send(Personal& mine, const NamedTensors& broadcast, const data::Shard& shard, const at::Tensor& remembered,
                  const StepContext& context, StepResult& result) const {
    const auto begin = std::chrono::steady_clock::now();
    const LabelledFeatures records = records_of(mine, broadcast, shard, context);
    const PrototypeSet global = find_prototypes(broadcast, kGlobal);
    try {
      PrototypeRelease::Result made = release_->release(records, global, remembered, context.own, context.release);
      result.upload = std::move(made.upload);
      result.report.noise_norm = made.noise_norm;
      result.report.measures["prototype_seconds"] = seconds_since(begin);
      if (member_.options.diagnostics) diagnose(records, made.dimensions, result.report);
      return made.dimensions;
    } catch (const privacy::BudgetSpent&) {
      if (!release_->options().once) throw;
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
    const privacy::DescentPlan plan = encoder_plan(spec_, member_.options, release_->prices(), context.own);
    const privacy::Channel channel = encoder_channel(noisy_->descent, plan, release_->prices(), context.own);
    noisy_->trainer.with_optimizer(context, [&](const std::function<void()>& update) {
      noisy_->descent.run(plan, channel, records_, shard.train, context.release, update);
    });
  }

  // The features that prototypes are made of.
  at::Tensor source_features(Personal& mine, const at::Tensor& x) const {
    if (member_.printed) return mine.trainer().features(x);
    return noisy_ != nullptr ? noisy_->trainer.features(x) : mine.untouched_features(x);
  }

  // The same of rows of the client's records().
  at::Tensor source_features_of(Personal& mine, const at::Tensor& rows) const {
    if (noisy_ != nullptr) return noisy_->trainer.features(rows);
    return member_.printed ? mine.trained_features_of(rows) : mine.untouched_features_of(rows);
  }

  // Whether a record may be missing, so that those behind it move up.
  bool records_may_shift() const {
    return upload_is_apart() && spec_.privacy->adjacency == privacy::Adjacency::kAddRemove;
  }

  // All records of the client and their labels; in no cells yet.
  LabelledFeatures placed_records(Personal& mine, const at::Tensor& centre, const data::Shard& shard) const {
    const auto features = [&](const std::vector<at::Tensor>& x) {
      return std::vector<at::Tensor>{placed(source_features(mine, x[0]), centre)};
    };
    std::vector<at::Tensor> values = {at::empty({0, shape_.width})}, labels = {at::empty({0}, at::kLong)};
    data::Batch batch;
    // Where records move up, each is computed anew in slots: in what was prepared, rows have places of their own.
    const data::Records& source = records_may_shift() ? records_ : mine.records();
    for (int64_t begin = 0; begin < shard.size(); begin += kFeatureBatch) {
      data::gather(source, shard.train.narrow(0, begin, std::min(kFeatureBatch, shard.size() - begin)), batch);
      values.push_back(records_may_shift() ? mine.slots(centre).apply({batch.x}, features)[0]
                                           : placed(source_features_of(mine, batch.x), centre));
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
    } else if (!release_->options().noisy()) {
      records.cells = cluster_within_classes(records.values, records.labels, context);
    } else if (member_.printed) {
      records.cluster = [this, labels = records.labels, &context](const at::Tensor& clipped) {
        return cluster_within_classes(clipped, labels, context);
      };
    } else {
      records.cells = cells_around_anchors(records, broadcast);
    }
    return records;
  }

  at::Tensor cluster_within_classes(const at::Tensor& values, const at::Tensor& of_classes,
                                    const StepContext& context) const {
    RandomStream stream = context.stream("clusters");
    at::Tensor cells = at::zeros_like(of_classes);
    int64_t next = 0;
    for (int64_t c = 0; c < shape_.classes; ++c) {
      const at::Tensor rows = of_classes.eq(c).nonzero().squeeze(1);
      if (rows.numel() == 0) continue;
      const at::Tensor own = values.index_select(0, rows);
      const auto k = static_cast<int64_t>(std::ceil(member_.options.cluster_rate * static_cast<double>(rows.numel())));
      const at::Tensor labels =
          member_.framework->local() == LocalPrototypes::kFinch ? finch(own) : k_means(own, k, stream);
      cells.index_copy_(0, rows, labels + next);
      next += cluster_count(labels);
    }
    return cells;
  }

  // A record moves nothing but the sums of the cell it is in: anchors are public, and in fixed slots its own does not
  // depend on how many others its class has.
  at::Tensor cells_around_anchors(const LabelledFeatures& records, const NamedTensors& broadcast) const {
    if (shape_.anchors == 1) return records.labels;
    at::Tensor anchors = find_tensor(broadcast, kAnchors);  // [C, anchors, d]
    if (!anchors.defined()) {
      anchors = public_directions(shape_, spec_.seed).unsqueeze(0).expand({shape_.classes, -1, -1});
    }
    const at::Tensor directions = anchors / anchors.norm(2, 2, true).clamp_min(1e-8);
    privacy::FixedSlots slots;
    const auto cosines = slots.apply({records.values, records.labels}, [&](const std::vector<at::Tensor>& some) {
      return std::vector<at::Tensor>{directions.index_select(0, some[1]).bmm(some[0].unsqueeze(2)).squeeze(2)};
    });
    return records.labels * shape_.anchors + cosines[0].argmax(1);
  }

  const RunSettings& spec_;
  const data::Records& records_;
  PrototypeMember member_;
  PrototypeShape shape_;
  std::unique_ptr<PrototypeRelease> release_;
  std::vector<std::unique_ptr<Personal>> kinds_;
  std::vector<std::unique_ptr<NoisyEncoder>> encoders_;  // one a kind, or null
  NoisyEncoder* noisy_ = nullptr;                        // of the client whose step this is
  Personal* selected_ = nullptr;
  PrototypeSet global_;  // of the broadcast that was selected
  at::Tensor centre_, own_centre_;
};

}  // namespace

std::unique_ptr<ClientMethod> make_prototype_client(const ClientContext& context, PrototypeMember member) {
  return std::make_unique<Client>(context, std::move(member));
}

}  // namespace sotto::methods

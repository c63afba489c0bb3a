// dp-prototypes: class means by a few noisy sums, and the linear classifier that follows from them.
//
// A client sends, for every class, the sum of its records' feature vectors and their number. Features are those of the
// model as everybody starts with it, so that no training has touched them. Three things make the noise small:
//
//   centring   The first release is a cheap one. Later ones sum what is left of records around the means that it gave,
//              which are shorter vectors: a smaller bound, less noise (as in CoinPress: S. Biswas et al., NeurIPS 2020).
//   shape      Coordinates that vary little on public records get little noise (PLAN: M. Aumüller et al., 2023).
//   pooling    Rounds count by the inverse variance of their noise; means are shrunk; how clients' means differ says how
//              records spread. All of that is made of releases (class_means.h).
//
// Proof: docs/proofs/cell-sums.md
#include "base/error.h"
#include "methods/parts/averaging.h"
#include "methods/parts/requirements.h"
#include "methods/parts/trainer_client.h"
#include "methods/prototypes/class_means.h"
#include "methods/prototypes/entries.h"
#include "models/task_data.h"
#include "privacy/calibration.h"
#include "privacy/dpsgd/slots.h"
#include "privacy/mechanisms/gaussian.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace sotto::methods {
namespace {

constexpr const char* kWhat = "class sums";
constexpr const char* kSums = "sums";
constexpr const char* kSumNoise = "sum_noise";
constexpr const char* kCountNoise = "count_noise";
// In the broadcast, beside the model.
constexpr const char* kCentres = "prototypes.centres";
constexpr const char* kScale = "prototypes.scale";
constexpr const char* kRadius = "prototypes.radius";

// The bound of what is left of a record, over what is left on average.
constexpr double kRoom = 1.1;
// Of a record's square, at least.
constexpr double kLeastLeft = 0.01;
constexpr int64_t kWidestScatter = 4096;
constexpr int64_t kFeatureBatch = 1024;

enum class Shape { kEven, kPublic };
constexpr auto choices(Shape) {
  return std::to_array<settings::Choice<Shape>>({{Shape::kEven, "even"}, {Shape::kPublic, "public"}});
}

struct Options {
  double radius = 1.0;       // the bound of a record's features in a client's first release
  double first_share = 0.1;  // what that costs of 1/z², if others follow
  double count_share = 0.1;  // one-sided adjacencies: what counting costs of a release
  Shape shape = Shape::kEven;
  std::string public_data;
  bool shrink = true;
  bool covariance = true;
};

Options read_options(settings::Section& section) {
  const settings::Range share{.low = 0.0, .high = 1.0, .low_excluded = true, .high_excluded = true};
  Options o;
  o.radius = section.number("radius", o.radius, settings::kPositive);
  o.first_share = section.number("first_share", o.first_share, share);
  o.count_share = section.number("count_share", o.count_share, share);
  o.shape = section.choice("shape", o.shape);
  o.public_data = section.text("public_data", "");
  o.shrink = section.boolean("shrink", o.shrink);
  o.covariance = section.one_of("covariance", "means", {"means", "none"}) == "means";
  if ((o.shape == Shape::kPublic) == o.public_data.empty()) {
    section.fail("public_data", "goes with shape = \"public\": name a public dataset, as `sotto data list` knows it");
  }
  return o;
}

std::vector<data::DataOptions> public_records(const RunSettings& spec, const Options& options) {
  if (options.shape == Shape::kEven) return {};
  data::DataOptions data = spec.data;
  data.name = options.public_data;
  data.otherwise.clear();
  data.path.clear();
  data.schema = {};
  data.domains.clear();
  return {data};
}

// The classifier's parameters, and what stands in for its bias where that is not trained: a feature that is the same for
// all records.
struct HeadNames {
  explicit HeadNames(const models::Model& model)
      : weight(model.head_name() + ".weight"), bias(model.head_name() + ".bias") {}
  std::string weight, bias;
};

std::shared_ptr<models::Model> checked_model(const PublicContext& context) {
  if (context.spec.model.lora.rank > 0)
    fail_user("model.lora: 'dp-prototypes' makes a classifier of features and trains nothing before it; leave it out");
  auto model = initial_model(context);
  const HeadNames names(*model);
  const at::Tensor weight = find_tensor(model->shared_parameters(), names.weight);
  const std::vector<int64_t> sizes = {context.facts.task.classes, model->feature_width()};
  if (!weight.defined() || weight.sizes() != at::IntArrayRef(sizes)) {
    fail_user(
        "method dp-prototypes makes a linear classifier of features, and model '{}' does not end in a shared one; "
        "set model.name = \"linear\"",
        context.spec.model.name);
  }
  require_separate_records(*model);
  return model;
}

// How a client's budget is dealt to its releases, and what each is.
class Releases {
 public:
  Releases(const PublicContext& context, const Options& options, int64_t width)
      : options_(options),
        terms_(require_privacy(context.spec, privacy::Unit::kRecord)),
        classes_(context.facts.task.classes),
        width_(width) {}

  // The `number`-th release of the client, from 1, of vectors of norm ≤ radius.
  privacy::Channel channel(const ClientFacts& client, int64_t number, double radius) const {
    return channel_of(mechanism(client, number, radius));
  }

  privacy::GroupwiseGaussian mechanism(const ClientFacts& client, int64_t number, double radius) const {
    return mechanism_at(client, share(client, number), radius);
  }

  privacy::CellRule rule(double radius) const {
    return {.cells = classes_,
            .by_label = true,
            .adjacency = terms_.adjacency,
            .parts = {{kSums, width_, radius, 1.0}},
            .count_share = options_.count_share};
  }

  // Releases cost together what as many of equal shares would.
  ReleasePlan plan(const ClientFacts& client) const {
    const auto releases = static_cast<double>(std::max<int64_t>(1, client.participations));
    const auto mechanism = mechanism_at(client, 1 / releases, options_.radius);
    privacy::Channel channel = channel_of(mechanism);
    channel.times(client.participations, "once per participation")
        .reaching({.coordinates = classes_ * width_,
                   .bound = options_.radius * static_cast<double>(client.records),
                   .noise_stddev = mechanism.noise_stddev(0)});
    return {channel};
  }

 private:
  privacy::Channel channel_of(const privacy::GroupwiseGaussian& mechanism) const {
    return privacy::Channel::gaussian(kWhat, privacy::Observer::kServer, mechanism, terms_.neighbours())
        .declaring(kSumNoise, mechanism.noise_stddev(0))
        .declaring(kCountNoise, mechanism.noise_stddev(1));
  }

  // `share` of what a budget buys of 1/z².
  privacy::GroupwiseGaussian mechanism_at(const ClientFacts& client, double share, double radius) const {
    const double whole = privacy::noise_multiplier_for(client.epsilon, terms_.delta, 1, 1.0, terms_.adjacency);
    return privacy::GroupwiseGaussian::joint(whole / std::sqrt(share), rule(radius).groups());
  }

  double share(const ClientFacts& client, int64_t number) const {
    if (client.participations <= 1) return 1;
    return number == 1 ? options_.first_share
                       : (1 - options_.first_share) / static_cast<double>(client.participations - 1);
  }

  Options options_;
  const privacy::PrivacyTerms& terms_;
  int64_t classes_, width_;
};

class Client : public TrainerClient {
 public:
  Client(const ClientContext& context, const Options& options)
      : TrainerClient(context), releases_(context, options, checked_model(context)->feature_width()) {}

  StepResult step(const Broadcast& broadcast, const data::Shard& shard, privacy::PrivateState& state,
                  const StepContext& context) override {
    select(broadcast, state);
    StepResult result;
    const double radius = find_tensor(broadcast.values, kRadius).item<double>();
    const privacy::Channel channel = releases_.channel(context.own, context.participation, radius);
    result.upload = channel.release(context.release, [&] {
      const auto [features, labels] = features_of(shard);
      result.report = {.loss = loss_of(features, labels), .samples = shard.size()};
      const at::Tensor centres = find_tensor(broadcast.values, kCentres).index_select(0, labels);
      NamedTensors values;
      values.push_back({kSums, (features - centres) * find_tensor(broadcast.values, kScale)});
      values.push_back({"counts", labels});
      return privacy::sum_cells(privacy::Contribution(std::move(values)), releases_.rule(radius));
    });
    result.report.noise_norm = releases_.mechanism(context.own, context.participation, radius).noise_norm(1);
    return result;
  }

 private:
  // Each record's computed in a slot of its own: it does not depend on who else is there.
  std::pair<at::Tensor, at::Tensor> features_of(const data::Shard& shard) {
    const at::NoGradGuard no_grad;
    std::vector<at::Tensor> features = {at::empty({0, trainer_.model().feature_width()})};
    std::vector<at::Tensor> labels = {at::empty({0}, at::kLong)};
    data::Batch batch;
    for (int64_t begin = 0; begin < shard.size(); begin += kFeatureBatch) {
      data::gather(records_, shard.train.narrow(0, begin, std::min(kFeatureBatch, shard.size() - begin)), batch);
      features.push_back(slots_.apply({batch.x}, [&](const std::vector<at::Tensor>& x) {
        return std::vector<at::Tensor>{trainer_.features(x[0])};
      })[0]);
      labels.push_back(batch.y.clone());
    }
    return {at::cat(features), at::cat(labels)};
  }

  double loss_of(const at::Tensor& features, const at::Tensor& labels) {
    const at::NoGradGuard no_grad;
    if (labels.numel() == 0) return 0;
    return at::cross_entropy_loss(trainer_.model().classify(features), labels).item<double>();
  }

  Releases releases_;
  privacy::FixedSlots slots_;
};

class Server : public ServerMethod {
 public:
  Server(const PublicContext& context, const Options& options)
      : options_(options),
        model_(checked_model(context)),
        names_(*model_),
        classes_(context.facts.task.classes),
        width_(model_->feature_width()),
        frame_{at::zeros({classes_, width_}), at::ones({width_})},
        radius_(options.radius),
        means_(classes_, width_) {
    const at::NoGradGuard no_grad;
    model_->eval();
    std::vector<int64_t> blank = {1};
    for (const int64_t size : context.facts.task.record_shape) blank.push_back(size);
    const auto type = context.facts.task.tokens ? at::kLong : at::kFloat;
    constant_ = model_->features(at::zeros(blank, type))[0][width_ - 1].item<double>();
    if (options_.shape == Shape::kPublic) frame_.scale = public_scale(context);
    begin_round();
  }

  Broadcast open() override { return broadcast(0); }

  void accept(const privacy::Upload& upload) override {
    const auto number = [&](const char* name) { return find_tensor(upload.values(), name).item<double>(); };
    const NoisyClassSums sums{.sums = find_tensor(upload.values(), kSums),
                              .counts = find_tensor(upload.values(), "counts"),
                              .sum_noise = number(kSumNoise),
                              .count_noise = number(kCountNoise)};
    pooled_.sums += sums.sums;
    pooled_.counts += sums.counts;
    pooled_.sum_noise = std::hypot(pooled_.sum_noise, sums.sum_noise);
    pooled_.count_noise = std::hypot(pooled_.count_noise, sums.count_noise);
    if (scatter_) scatter_->add(sums);
    heard_ = true;
  }

  Broadcast aggregate(const RoundContext& context) override {
    if (heard_) learn();
    begin_round();
    return broadcast(context.round());
  }

  NamedTensors state() const override { return means_.state(); }

  void restore(const Broadcast& last, const NamedTensors& state) override {
    NamedTensors parameters = model_->shared_parameters();
    for (auto& [name, value] : parameters) value.detach().copy_(find_tensor(last.values, name));
    frame_ = {find_tensor(last.values, kCentres).clone(), find_tensor(last.values, kScale).clone()};
    radius_ = find_tensor(last.values, kRadius).item<double>();
    means_.restore(state);
    begin_round();
  }

 private:
  // Noise is least, in all, where coordinate j is divided by the root of its deviation. Scaled so that lengths are kept
  // on average.
  at::Tensor public_scale(const PublicContext& context) const {
    const data::DataOptions data = public_records(context.spec, options_).front();
    const models::TaskData known = models::load_task_data(data, context.spec.model, context.spec.seed);
    if (known.task.record_shape != context.facts.task.record_shape) {
      fail_user("method.public_data: records of '{}' do not have the shape of the clients' records",
                options_.public_data);
    }
    at::Tensor sums = at::zeros({width_}, at::kDouble), squares = at::zeros({width_}, at::kDouble);
    const int64_t records = known.dataset.train.size();
    data::Batch batch;
    for (int64_t begin = 0; begin < records; begin += kFeatureBatch) {
      const at::Tensor rows = at::arange(begin, std::min(begin + kFeatureBatch, records), at::kLong);
      data::gather(known.dataset.train, rows, batch);
      const at::Tensor features = model_->features(batch.x).to(at::kDouble);
      sums += features.sum(0);
      squares += features.square().sum(0);
    }
    const at::Tensor seconds = squares / static_cast<double>(records);
    const at::Tensor variances = (seconds - (sums / static_cast<double>(records)).square()).clamp_min(0);
    const at::Tensor floor = variances.mean() / 100;
    const at::Tensor scale = (variances + floor).pow(-0.25);
    return (scale * (seconds.sum() / (seconds * scale.square()).sum()).sqrt()).to(at::kFloat);
  }

  void begin_round() {
    pooled_ = {.sums = at::zeros({classes_, width_}, at::kDouble), .counts = at::zeros({classes_}, at::kDouble)};
    scatter_.reset();
    if (options_.covariance && width_ <= kWidestScatter) scatter_.emplace(classes_, width_);
    heard_ = false;
  }

  void learn() {
    means_.add(frame_, pooled_);
    const ClassEstimate known = options_.shrink ? means_.shrunk() : means_.unshrunk();
    const at::Tensor counts = means_.counts(), share = (counts / counts.sum()).unsqueeze(1);
    const at::Tensor scale = frame_.scale.to(at::kDouble);
    const double all = options_.radius * options_.radius;
    // Records of length `all` at most are so far from their class's true mean, squared, and the mean from its estimate.
    const auto over_classes = [&](const at::Tensor& squares) {
      return std::max(0.0, (squares * share).sum().item<double>());
    };
    const double told = over_classes(known.squares * scale.square()), risk = over_classes(known.risk * scale.square());
    const double level = std::max(all - over_classes(known.squares), all * kLeastLeft) / static_cast<double>(width_);
    Spread spread{
        .level = level, .directions = at::empty({0, width_}, at::kDouble), .extra = at::empty({0}, at::kDouble)};
    if (scatter_) {
      spread = scatter_->spread(level * scale.square().mean().item<double>());
      spread.level = level;
    }
    set_head(discriminant(known.means, counts, spread, scale));
    const double left = kRoom * kRoom * std::max(all - told + risk, all * kLeastLeft);
    frame_.centres = left < all ? known.means.to(at::kFloat) : at::zeros({classes_, width_});
    radius_ = std::sqrt(std::min(left, all));
  }

  void set_head(const LinearRule& rule) {
    const at::NoGradGuard no_grad;
    const NamedTensors parameters = model_->shared_parameters();
    at::Tensor weight = rule.weight.clone();
    const at::Tensor bias = find_tensor(parameters, names_.bias);
    if (bias.defined()) {
      bias.copy_(rule.bias);
    } else if (constant_ != 0) {
      weight.select(1, width_ - 1).add_(rule.bias / constant_);
    }
    find_tensor(parameters, names_.weight).copy_(weight);
  }

  Broadcast broadcast(int64_t round) const {
    Broadcast sent{round, clone(model_->shared_parameters())};
    sent.values.push_back({kCentres, frame_.centres.clone()});
    sent.values.push_back({kScale, frame_.scale.clone()});
    sent.values.push_back({kRadius, at::scalar_tensor(radius_, at::kDouble)});
    return sent;
  }

  Options options_;
  std::shared_ptr<models::Model> model_;
  HeadNames names_;
  int64_t classes_, width_;
  double constant_ = 0;  // the last feature, where it is the same for all records
  Frame frame_;
  double radius_;
  ClassMeans means_;
  NoisyClassSums pooled_;
  std::optional<ClientScatter> scatter_;
  bool heard_ = false;
};

}  // namespace

MethodEntry dp_prototypes() {
  const auto options = [](const PublicContext& context) { return context.spec.options_of<Options>(); };
  const auto width = [](const PublicContext& context) { return checked_model(context)->feature_width(); };
  return {.name = "dp-prototypes",
          .what = "a linear classifier from centred, noisy class sums; one release of it is enough",
          .citation = "after Biswas et al., NeurIPS 2020; Aumüller et al., 2023; Goswami et al., 2024",
          .family = "prototypes",
          .units = {privacy::Unit::kRecord},
          .observers = {privacy::Observer::kServer},
          .read_options = [](settings::Section& section) { return std::any(read_options(section)); },
          .public_data = [](const RunSettings& spec) { return public_records(spec, spec.options_of<Options>()); },
          .plan =
              [options, width](const PublicContext& context, const ClientFacts& client) {
                return Releases(context, options(context), width(context)).plan(client);
              },
          .personal = [](const RunSettings&) { return false; },
          .global = [](const RunSettings&) { return true; },
          .make_client = [options](const ClientContext& context) -> std::unique_ptr<ClientMethod> {
            return std::make_unique<Client>(context, options(context));
          },
          .make_server = [options](const PublicContext& context) -> std::unique_ptr<ServerMethod> {
            return std::make_unique<Server>(context, options(context));
          },
          .broadcast_shape =
              [options](const PublicContext& context, BroadcastShape opening, const Broadcast&) {
                for (privacy::TensorShape& tensor : opening) {
                  if (tensor.name == kScale) tensor.least = 0;
                  if (tensor.name != kRadius) continue;
                  tensor.most = options(context).radius;
                  tensor.least = tensor.most * kRoom * std::sqrt(kLeastLeft) * (1 - 1e-9);
                }
                return opening;
              },
          .upload_shape =
              [width](const PublicContext& context, const Broadcast&) {
                const int64_t classes = context.facts.task.classes;
                return privacy::UploadShape{.tensors = {{.name = kSums, .sizes = {classes, width(context)}},
                                                        {.name = "counts", .sizes = {classes}},
                                                        number_shape(kSumNoise),
                                                        number_shape(kCountNoise)}};
              }};
}

}  // namespace sotto::methods

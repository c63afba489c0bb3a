#include "methods/prototypes/prototype_release.h"

#include "base/error.h"
#include "methods/parts/averaging.h"
#include "methods/parts/requirements.h"
#include "methods/prototypes/clustering.h"
#include "methods/prototypes/dimension_score.h"
#include "privacy/calibration.h"
#include "privacy/mechanisms/laplace.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

namespace sotto::methods {
namespace {

constexpr const char* kPrototypes = "prototypes";
constexpr const char* kCentre = "centre";
constexpr const char* kDimensions = "dimensions";
constexpr const char* kSums = "sums";
constexpr const char* kCounts = "counts";
constexpr const char* kClasses = "classes";
constexpr const char* kNoNoise = "no noise was asked for (mechanism = \"none\")";
constexpr const char* kOracle = "the selection \"oracle\" reads scores of private records";
constexpr const char* kSupport = "which classes a client holds, and how many records of each, is sent in the clear";
constexpr const char* kClusterSupport =
    "how many clusters there are, and how large they are, depends on private records";

at::Tensor clipped(const at::Tensor& rows, double bound) {
  return rows * (bound / rows.norm(2, 1, true).clamp_min(1e-12)).clamp_max(1.0);
}

at::Tensor rest_of(const at::Tensor& first, int64_t width) {
  return at::ones({width}, at::kBool).index_fill_(0, first, false).nonzero().squeeze(1);
}

// Sums whose dimensions were noised in two groups, as one tensor.
NamedTensors joined_sums(const NamedTensors& noisy, const at::Tensor& first, const PrototypeShape& shape) {
  at::Tensor sums = at::empty({shape.cells(), shape.width});
  sums.index_copy_(1, first, noisy[0].value);
  sums.index_copy_(1, rest_of(first, shape.width), noisy[1].value);
  NamedTensors whole;
  whole.push_back({kSums, sums});
  whole.push_back(noisy[2]);
  return whole;
}

// What is sent of means besides their values, in the clear: channels of means say that nothing is proven of it.
struct Support {
  bool clusters = false;
  int64_t cells = 0;  // classes, or clusters
  int64_t width = 0;
  at::Tensor held;     // cells with a record
  at::Tensor classes;  // of those
  int64_t records = 0;
  std::vector<at::Tensor> columns;  // of each group of dimensions; one undefined tensor: all
};

NamedTensors assembled(const std::vector<at::Tensor>& columns, const Support& support) {
  at::Tensor whole = columns.front();
  if (columns.size() > 1) {
    whole = at::empty({support.held.numel(), support.width});
    for (size_t g = 0; g < columns.size(); ++g) whole.index_copy_(1, support.columns[g], columns[g]);
  }
  NamedTensors upload;
  if (support.clusters) {
    upload.push_back({kPrototypes, whole});
    upload.push_back({kClasses, support.classes});
  } else {
    upload.push_back({kPrototypes, at::zeros({support.cells, support.width}).index_copy_(0, support.held, whole)});
  }
  upload.push_back(declared_weight(static_cast<double>(support.records)));
  return upload;
}

// Means that were noised one by one, group after group.
NamedTensors joined_means(const NamedTensors& noisy, const Support& support) {
  std::vector<at::Tensor> columns;
  const auto rows = static_cast<size_t>(support.held.numel());
  for (size_t g = 0; g < support.columns.size(); ++g) {
    std::vector<at::Tensor> vectors;
    for (size_t k = 0; k < rows; ++k) vectors.push_back(noisy[g * rows + k].value);
    columns.push_back(at::stack(vectors));
  }
  return assembled(columns, support);
}

}  // namespace

ReleaseOptions read_release_options(settings::Section& section) {
  ReleaseOptions o;
  o.mechanism = section.one_of("mechanism", o.mechanism, {"local", "none", "igpp", "vpp"});
  o.selection = section.one_of("selection", o.selection, {"paper", "once", "free", "random", "oracle"});
  o.weighting = section.one_of("weighting", o.weighting, {"paper", "best", "even"});
  o.once = section.one_of("release", "every-round", {"every-round", "once"}) == "once";
  o.radius = section.number("radius", o.radius, settings::kPositive);
  o.rho = section.number("rho", o.rho, {.low = 0.0, .high = 0.5, .low_excluded = true});
  o.split = section.number("split", o.split, {.low = 0.0, .high = 1.0, .low_excluded = true, .high_excluded = true});
  o.high = section.number("high", o.high, settings::kPositive);
  o.zeta = section.number("zeta", o.zeta, settings::kPositive);
  o.centre = section.boolean("centre", o.centre);
  o.centre_share = section.number("centre_share", o.centre_share,
                                  {.low = 0.0, .high = 1.0, .low_excluded = true, .high_excluded = true});
  o.count_share = section.number("count_share", o.count_share,
                                 {.low = 0.0, .high = 1.0, .low_excluded = true, .high_excluded = true});
  return o;
}

PrototypeRelease::PrototypeRelease(const PublicContext& context, const ReleaseOptions& options,
                                   const PrototypeShape& shape, bool clusters)
    : spec_(context.spec),
      options_(options),
      shape_(shape),
      clusters_(clusters),
      printed_(context.spec.as_printed()),
      most_participations_(std::max<int64_t>(1, context.facts.most_participations)) {
  if (options_.centre && (printed_ || !options_.noisy())) {
    fail_user("method.centre: only sound releases with noise are centred; leave it out");
  }
  if (!options_.noisy()) return;
  require_privacy(spec_, privacy::Unit::kRecord);
  if (options_.parted() && shape_.width < 2) fail_user("method.width: mechanism \"vpp\" needs at least 2 dimensions");
}

int64_t PrototypeRelease::first_width() const {
  return std::clamp<int64_t>(static_cast<int64_t>(std::ceil(options_.rho * static_cast<double>(shape_.width))), 1,
                             shape_.width - 1);
}

// At least one: what is planned for a client that takes part in nothing is priced all the same.
int64_t PrototypeRelease::releases(const ClientFacts& client) const {
  return options_.once ? 1 : std::max<int64_t>(client.participations, 1);
}

std::string PrototypeRelease::how_often() const {
  return options_.once ? "once" : "once per participation";
}

double PrototypeRelease::encoder_multiplier(const ClientFacts& client, int64_t touches) const {
  return privacy::noise_multiplier_for(epsilon_for_values(client), spec_.privacy->delta, touches * releases(client),
                                       1.0, spec_.privacy->neighbours().adjacency) /
         std::sqrt(options_.encoder_share);
}

int64_t PrototypeRelease::selections(const ClientFacts& client) const {
  return options_.selection == "once" ? 1 : releases(client);
}

double PrototypeRelease::selection_epsilon(const ClientFacts& client) const {
  return options_.split * client.epsilon / static_cast<double>(selections(client));
}

double PrototypeRelease::epsilon_for_values(const ClientFacts& client) const {
  return options_.pays_for_selection() ? (1 - options_.split) * client.epsilon : client.epsilon;
}

// Gaussians add up by 1/z²: the centre has its share of what one release could have, prototypes share the rest.
double PrototypeRelease::centre_multiplier(const ClientFacts& client) const {
  return privacy::noise_multiplier_for(epsilon_for_values(client), spec_.privacy->delta, 1, 1.0,
                                       spec_.privacy->neighbours().adjacency) /
         std::sqrt(options_.centre_share);
}

double PrototypeRelease::multiplier(const ClientFacts& client) const {
  const double epsilon = epsilon_for_values(client);
  const double delta = spec_.privacy->delta;
  if (!printed_) {
    const double z =
        privacy::noise_multiplier_for(epsilon, delta, releases(client), 1.0, spec_.privacy->neighbours().adjacency);
    return z / std::sqrt(1 - (options_.centre ? options_.centre_share : 0.0) - options_.encoder_share);
  }
  const auto printed = privacy::printed_noise_multiplier(epsilon, delta, releases(client));
  if (!printed) {
    fail_user("privacy.epsilon: {} is below what the paper's accounting can certify at δ = {}", epsilon, delta);
  }
  return *printed;
}

double PrototypeRelease::paper_weight() const {
  const double first = std::sqrt(static_cast<double>(first_width()) / static_cast<double>(shape_.width));
  const double rest = std::sqrt(1 - first * first);
  return rest / (first + rest);
}

at::Tensor PrototypeRelease::select_privately(const LabelledFeatures& records, const ClientFacts& client,
                                              const privacy::ReleaseContext& context) const {
  const privacy::Release chosen = selection_channel(client).release(context, [&] {
    NamedTensors scores;
    scores.push_back({"scores", dimension_scores(records.values, records.labels, shape_.classes, options_.zeta)});
    return privacy::clamp_each(privacy::Contribution(std::move(scores)), options_.high);
  });
  return chosen.values().front().value.clone();
}

privacy::Channel PrototypeRelease::clear_channel(const ClientFacts& client) const {
  return privacy::Channel::in_the_clear(kPrototypes, kNoNoise).times(releases(client), how_often());
}

privacy::Channel PrototypeRelease::oracle_channel(const ClientFacts& client) const {
  return privacy::Channel::in_the_clear(kDimensions, kOracle).times(releases(client), how_often());
}

privacy::Channel PrototypeRelease::selection_channel(const ClientFacts& client) const {
  privacy::Channel channel =
      privacy::Channel::top_k(
          kDimensions, privacy::Observer::kServer,
          privacy::LaplaceTopK(shape_.width, options_.high, first_width(), selection_epsilon(client)),
          spec_.privacy->neighbours())
          .times(selections(client), selections(client) == 1 ? "once" : "once per participation");
  if (printed_) channel.claiming({.by = privacy::kClaimEach, .epsilon = selection_epsilon(client)});
  return channel;
}

privacy::Channel PrototypeRelease::sums_channel(const privacy::GroupwiseGaussian& mechanism,
                                                const ClientFacts& client) const {
  return privacy::Channel::gaussian(kPrototypes, privacy::Observer::kServer, mechanism, spec_.privacy->neighbours())
      .times(releases(client), how_often());
}

privacy::Channel PrototypeRelease::means_channel(const privacy::GroupwiseGaussian& mechanism,
                                                 const ClientFacts& client) const {
  return sums_channel(mechanism, client)
      .unproven(why_unproven())
      .claiming({.by = privacy::kClaimRun, .epsilon = epsilon_for_values(client)});
}

privacy::Channel PrototypeRelease::centre_channel(const ClientFacts& client) const {
  return privacy::Channel::gaussian(
             kCentre, privacy::Observer::kServer,
             privacy::GroupwiseGaussian::joint(centre_multiplier(client), centre_rule().groups()),
             spec_.privacy->neighbours())
      .times(1, "once, first");
}

PrototypeRelease::Parts PrototypeRelease::part(const LabelledFeatures& records, const PrototypeSet& global,
                                               const at::Tensor& remembered, const ClientFacts& client,
                                               const privacy::ReleaseContext& context) const {
  if (!options_.parted()) return {};
  Parts parts;
  const int64_t width = first_width();
  at::Tensor known;  // how the classes differ, dimension by dimension, as far as is public
  if (!global.empty()) known = between_class_variance(global.values, global.classes, shape_.classes);
  if (options_.selection == "free") {
    if (!known.defined()) return {};
    parts.first = largest(known, width);
  } else if (options_.selection == "random") {
    RandomStream stream(spec_.seed, "random-dimensions", static_cast<uint64_t>(context.round),
                        static_cast<uint64_t>(context.client));
    parts.first = at::tensor(stream.sample_without_replacement(shape_.width, width), at::kLong);
  } else if (options_.selection == "oracle") {
    const privacy::Release chosen = oracle_channel(client).release_clear(context, [&] {
      NamedTensors indices;
      indices.push_back(
          {"indices", largest(dimension_scores(records.values, records.labels, shape_.classes, options_.zeta), width)});
      return privacy::Contribution(std::move(indices));
    });
    parts.first = chosen.values().front().value.clone();
  } else if (options_.selection == "once" && remembered.defined()) {
    parts.first = remembered;
  } else {
    parts.first = select_privately(records, client, context);
  }
  const double rho = static_cast<double>(width) / static_cast<double>(shape_.width);
  parts.weight = options_.weighting == "paper" ? paper_weight() : rho;
  if (options_.weighting == "best" && known.defined()) {
    const double total = known.sum().item<double>();
    const double share = total > 0 ? known.index_select(0, parts.first).sum().item<double>() / total : rho;
    const double first = std::sqrt(share * rho), rest = std::sqrt((1 - share) * (1 - rho));
    // A weight of 0 or 1 would leave one group without any noise to speak of and drown the other.
    parts.weight = std::clamp(first / (first + rest), 0.01, 0.99);
  }
  return parts;
}

privacy::CellRule PrototypeRelease::rule(const Parts& parts) const {
  privacy::CellRule rule;
  rule.cells = shape_.cells();
  rule.by_label = shape_.anchors == 1;
  rule.adjacency = spec_.privacy->neighbours().adjacency;
  rule.count_share = options_.count_share;
  if (!parts.first.defined()) {
    rule.parts = {{kSums, shape_.width, options_.radius, 1.0}};
    return rule;
  }
  const double rho = static_cast<double>(parts.first.numel()) / static_cast<double>(shape_.width);
  rule.parts = {{"A", parts.first.numel(), options_.radius * std::sqrt(rho), parts.weight},
                {"B", shape_.width - parts.first.numel(), options_.radius * std::sqrt(1 - rho), 1 - parts.weight}};
  return rule;
}

PrototypeRelease::Result PrototypeRelease::release_sums(const LabelledFeatures& records, const Parts& parts,
                                                        const ClientFacts& client,
                                                        const privacy::ReleaseContext& context) const {
  const privacy::CellRule rule = this->rule(parts);
  const auto mechanism = privacy::GroupwiseGaussian::joint(multiplier(client), rule.groups());
  privacy::Release release = sums_channel(mechanism, client).release(context, [&] {
    NamedTensors values;
    if (parts.first.defined()) {
      values.push_back({"A", records.values.index_select(1, parts.first)});
      values.push_back({"B", records.values.index_select(1, rest_of(parts.first, shape_.width))});
    } else {
      values.push_back({kSums, records.values});
    }
    values.push_back({kCounts, records.cells});
    return privacy::sum_cells(privacy::Contribution(std::move(values)), rule);
  });
  if (parts.first.defined()) {
    release = privacy::post_process(std::move(release), joined_sums, parts.first, shape_);
  }
  return {std::move(release), mechanism.noise_norm(1), parts.first};
}

std::string PrototypeRelease::why_unproven() const {
  if (clusters_) return kClusterSupport;
  return spec_.privacy->adjacency == privacy::Adjacency::kReplaceSameLabel ? "" : kSupport;
}

PrototypeRelease::Result PrototypeRelease::release_means(const LabelledFeatures& records, const Parts& parts,
                                                         const ClientFacts& client,
                                                         const privacy::ReleaseContext& context) const {
  const at::Tensor cells = clusters_ ? records.cells : records.labels;
  const int64_t count = clusters_ ? cluster_count(records.cells) : shape_.classes;
  const at::Tensor sizes = at::bincount(cells, {}, count).to(at::kFloat);
  const at::Tensor held = sizes.gt(0).nonzero().squeeze(1);
  const at::Tensor classes = at::zeros({count}, at::kLong).index_copy_(0, cells, records.labels).index_select(0, held);
  const auto means_of = [&](const at::Tensor& rows) {
    const at::Tensor sums = at::zeros({count, rows.size(1)}).index_add_(0, cells, rows);
    return (sums / sizes.clamp_min(1).unsqueeze(1)).index_select(0, held);
  };
  Support support{.clusters = clusters_,
                  .cells = count,
                  .width = shape_.width,
                  .held = held,
                  .classes = classes,
                  .records = records.labels.size(0),
                  .columns = {at::Tensor()}};
  std::vector<double> bounds = {options_.radius}, weights = {1.0};
  if (parts.first.defined()) {
    const double rho = static_cast<double>(parts.first.numel()) / static_cast<double>(shape_.width);
    support.columns = {parts.first, rest_of(parts.first, shape_.width)};
    bounds = {options_.radius * std::sqrt(rho), options_.radius * std::sqrt(1 - rho)};
    weights = {parts.weight, 1 - parts.weight};
  }
  if (!options_.noisy()) {
    return {clear_channel(client).release_clear(
                context, [&] { return privacy::Contribution(assembled({means_of(records.values)}, support)); }),
            0.0, at::Tensor()};
  }

  const double sigma = multiplier(client);
  std::vector<privacy::ClipRule> rules;
  std::vector<privacy::Group> groups;
  std::vector<double> stddevs;
  NamedTensors values;
  for (size_t g = 0; g < bounds.size(); ++g) {
    const at::Tensor& chosen = support.columns[g];
    const at::Tensor columns = chosen.defined() ? records.values.index_select(1, chosen) : records.values;
    const at::Tensor means = means_of(clipped(columns, bounds[g]));
    for (int64_t k = 0; k < means.size(0); ++k) {
      const std::string name = fmt::format("{}.{}", k, groups.size());
      values.push_back({name, means[k].clone()});
      rules.push_back({name, 1, bounds[g]});
      groups.push_back({name, 1, means.size(1), 2 * bounds[g]});
      stddevs.push_back(sigma / std::sqrt(weights[g]) * 2 * bounds[g] / sizes[held[k].item<int64_t>()].item<double>());
    }
  }
  const auto mechanism = privacy::GroupwiseGaussian::with_stddevs(std::move(groups), std::move(stddevs));
  privacy::Release release = means_channel(mechanism, client).release(context, [&] {
    return privacy::clip_whole(privacy::Contribution(std::move(values)), rules, spec_.privacy->neighbours());
  });
  return {privacy::post_process(std::move(release), joined_means, support), mechanism.noise_norm(), parts.first};
}

PrototypeRelease::Result PrototypeRelease::release(const LabelledFeatures& records, const PrototypeSet& global,
                                                   const at::Tensor& remembered, const ClientFacts& client,
                                                   const privacy::ReleaseContext& context) const {
  const Parts parts = part(records, global, remembered, client, context);
  const bool means = printed_ || !options_.noisy();
  return means ? release_means(records, parts, client, context) : release_sums(records, parts, client, context);
}

privacy::CellRule PrototypeRelease::centre_rule() const {
  privacy::CellRule rule = this->rule({});
  rule.cells = 1;
  rule.by_label = false;
  rule.parts.front().name = kCentre;
  return rule;
}

PrototypeRelease::Result PrototypeRelease::release_centre(const at::Tensor& features, const ClientFacts& client,
                                                          const privacy::ReleaseContext& context) const {
  const privacy::CellRule rule = centre_rule();
  const auto mechanism = privacy::GroupwiseGaussian::joint(centre_multiplier(client), rule.groups());
  privacy::Release release = centre_channel(client).release(context, [&] {
    NamedTensors values;
    values.push_back({kCentre, features});
    values.push_back({kCounts, at::zeros({features.size(0)}, at::kLong)});
    return privacy::sum_cells(privacy::Contribution(std::move(values)), rule);
  });
  return {std::move(release), mechanism.noise_norm(1), at::Tensor()};
}

ClientFacts PrototypeRelease::least_budget() const {
  return {.records = 0, .participations = most_participations_, .epsilon = spec_.privacy->least_budget()};
}

NoiseScale PrototypeRelease::noise_scale() const {
  if (printed_ || !options_.noisy()) return {};
  const auto groups = rule({}).groups();
  const double z = multiplier(least_budget());
  return {z * groups.front().sensitivity, z * groups.back().sensitivity};
}

NoiseScale PrototypeRelease::centre_noise_scale() const {
  if (!options_.centre) return {};
  const auto groups = centre_rule().groups();
  const double z = centre_multiplier(least_budget());
  return {z * groups.front().sensitivity, z * groups.back().sensitivity};
}

ReleasePlan PrototypeRelease::plan(const ClientFacts& client) const {
  if (options_.silent()) return {};
  ReleasePlan plan;
  // A client that takes part in fewer rounds than it may release in makes fewer.
  const auto add = [&](privacy::Channel channel, const privacy::NoiseReach& reach = {}) {
    const int64_t times = std::min(channel.times(), client.participations);
    plan.push_back(channel.times(times, channel.how_often()).reaching(reach));
  };
  if (options_.mechanism == "none") {
    add(clear_channel(client));
    return plan;
  }
  privacy::NoiseReach reach{.coordinates = shape_.cells() * shape_.width,
                            .bound = options_.radius * static_cast<double>(client.records)};
  if (printed_) {
    // Noise goes by the size of a class: what is shown is that of equal classes.
    const double size = std::max(1.0, static_cast<double>(client.records) / static_cast<double>(shape_.classes));
    const double bound = options_.radius;
    const auto mechanism = privacy::GroupwiseGaussian::with_stddevs(
        {{kPrototypes, 1, reach.coordinates, 2 * bound * std::sqrt(static_cast<double>(shape_.classes))}},
        {multiplier(client) * 2 * bound / size});
    reach.bound = bound * std::sqrt(static_cast<double>(shape_.classes));
    reach.noise_stddev = mechanism.noise_stddev(0);
    add(means_channel(mechanism, client), reach);
  } else {
    const auto mechanism = privacy::GroupwiseGaussian::joint(multiplier(client), rule({}).groups());
    reach.noise_stddev = mechanism.noise_stddev(0);
    add(sums_channel(mechanism, client), reach);
  }
  if (options_.centre) {
    const auto mechanism = privacy::GroupwiseGaussian::joint(centre_multiplier(client), centre_rule().groups());
    add(centre_channel(client), {.coordinates = shape_.width,
                                 .bound = options_.radius * static_cast<double>(client.records),
                                 .noise_stddev = mechanism.noise_stddev(0)});
  }
  if (options_.parted() && options_.selection == "oracle") add(oracle_channel(client));
  if (options_.pays_for_selection()) add(selection_channel(client));
  return plan;
}

privacy::UploadShape PrototypeRelease::upload_shape(const Broadcast& broadcast) const {
  if (options_.silent()) return {};
  if (!printed_ && options_.noisy()) {
    if (options_.centre && !find_tensor(broadcast.values, kCentre).defined()) {
      return {.tensors = {{.name = kCentre, .sizes = {1, shape_.width}}, {.name = kCounts, .sizes = {1}}}};
    }
    return {.tensors = {{.name = kSums, .sizes = {shape_.cells(), shape_.width}},
                        {.name = kCounts, .sizes = {shape_.cells()}}}};
  }
  const int64_t rows = clusters_ ? privacy::kAnyLength : shape_.classes;
  privacy::UploadShape shape{.tensors = {{.name = kPrototypes, .sizes = {rows, shape_.width}}}};
  if (clusters_) {
    shape.tensors.push_back({.name = kClasses,
                             .sizes = {privacy::kAnyLength},
                             .dtype = at::kLong,
                             .least = 0,
                             .most = static_cast<double>(shape_.classes - 1)});
  }
  shape.tensors.push_back(weight_shape());
  return shape;
}

CentreSums centre_of(const NamedTensors& upload) {
  const at::Tensor sum = find_tensor(upload, kCentre);
  if (!sum.defined()) return {};
  return {sum[0], find_tensor(upload, kCounts).item<double>()};
}

PrototypeSet prototypes_of(const NamedTensors& upload, const PrototypeShape& shape, double least) {
  const at::Tensor sums = find_tensor(upload, kSums);
  if (sums.defined()) {
    const at::Tensor counts = find_tensor(upload, kCounts);
    const at::Tensor classes = at::arange(shape.cells(), at::kLong).div(shape.anchors, "floor");
    return {sums / counts.clamp_min(std::max(least, 1.0)).unsqueeze(1), classes, counts};
  }
  PrototypeSet set;
  set.values = find_tensor(upload, kPrototypes);
  set.classes = find_tensor(upload, kClasses);
  if (!set.classes.defined()) set.classes = at::arange(set.values.size(0), at::kLong);
  set.weights = at::full({set.values.size(0)}, find_tensor(upload, kRecordsName).item<double>(), at::kFloat);
  return set.where(set.values.ne(0).any(1));
}

}  // namespace sotto::methods

#include "base/error.h"
#include "methods/parts/averaging.h"
#include "methods/prototypes/clustering.h"
#include "methods/prototypes/prototype_release.h"

#include <ATen/ATen.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace sotto::methods {
namespace {

constexpr const char* kNoNoise = "no noise was asked for (mechanism = \"none\")";
constexpr const char* kSupport = "which classes a client holds, and how many records of each, is sent without noise";
constexpr const char* kClusterSupport =
    "how many clusters there are, and how large they are, depends on private records";

at::Tensor clipped(const at::Tensor& rows, double bound) {
  return rows * (bound / rows.norm(2, 1, true).clamp_min(1e-12)).clamp_max(1.0);
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
    upload.push_back({kPrototypesName, whole});
    upload.push_back({kClassesName, support.classes});
  } else {
    upload.push_back({kPrototypesName, at::zeros({support.cells, support.width}).index_copy_(0, support.held, whole)});
  }
  upload.push_back(declared_weight(static_cast<double>(support.records)));
  return upload;
}

// Means that were noised one by one, group after group.
NamedTensors joined_means(const NamedTensors& noisy, const bool& clusters, const int64_t& cells, const int64_t& width,
                          const int64_t& records, const std::vector<privacy::Disclosed>& held_and_classes,
                          const std::vector<privacy::Disclosed>& chosen) {
  Support support{.clusters = clusters,
                  .cells = cells,
                  .width = width,
                  .held = held_and_classes[0].value(),
                  .classes = held_and_classes[1].value(),
                  .records = records,
                  .columns = {at::Tensor()}};
  if (!chosen.empty()) {
    const at::Tensor first = chosen.front().value().to(at::kLong);
    support.columns = {first, rest_of(first, width)};
  }
  std::vector<at::Tensor> columns;
  const auto rows = static_cast<size_t>(support.held.numel());
  for (size_t g = 0; g < support.columns.size(); ++g) {
    std::vector<at::Tensor> vectors;
    for (size_t k = 0; k < rows; ++k) vectors.push_back(noisy[g * rows + k].value);
    columns.push_back(at::stack(vectors));
  }
  return assembled(columns, support);
}

// What noisy means and those in the clear have in common.
class AnyMeans : public PrototypeRelease {
 public:
  AnyMeans(const PublicContext& context, const ReleaseOptions& options, const PrototypeShape& shape, bool clusters)
      : PrototypeRelease(context, options, shape), clusters_(clusters) {}

  Result release_centre(const at::Tensor&, const ClientFacts&, const privacy::ReleaseContext&) const override {
    internal_bug("means are not centred", __FILE__, __LINE__);
  }

  privacy::UploadShape upload_shape(const Broadcast&) const override {
    const int64_t rows = clusters_ ? privacy::kAnyLength : shape_.classes;
    privacy::UploadShape shape{.tensors = {{.name = kPrototypesName, .sizes = {rows, shape_.width}}}};
    if (clusters_) {
      shape.tensors.push_back({.name = kClassesName,
                               .sizes = {privacy::kAnyLength},
                               .dtype = at::kLong,
                               .least = 0,
                               .most = static_cast<double>(shape_.classes - 1)});
    }
    shape.tensors.push_back(weight_shape());
    return shape;
  }

 protected:
  // One client's cells: classes, or clusters.
  struct Cells {
    at::Tensor of;  // int64 [n]: of each record
    int64_t count = 0;
    at::Tensor sizes;  // float [count]
    Support support;

    at::Tensor means(const at::Tensor& rows) const {
      const at::Tensor sums = at::zeros({count, rows.size(1)}).index_add_(0, of, rows);
      return (sums / sizes.clamp_min(1).unsqueeze(1)).index_select(0, support.held);
    }
  };

  Cells cells_of(const LabelledFeatures& records, const at::Tensor& clusters) const {
    Cells cells;
    cells.of = clusters_ ? clusters : records.labels;
    cells.count = clusters_ ? cluster_count(clusters) : shape_.classes;
    cells.sizes = at::bincount(cells.of, {}, cells.count).to(at::kFloat);
    const at::Tensor held = cells.sizes.gt(0).nonzero().squeeze(1);
    cells.support = {
        .clusters = clusters_,
        .cells = cells.count,
        .width = shape_.width,
        .held = held,
        .classes = at::zeros({cells.count}, at::kLong).index_copy_(0, cells.of, records.labels).index_select(0, held),
        .records = records.labels.size(0),
        .columns = {at::Tensor()}};
    return cells;
  }

  bool clusters_;
};

class ClearRelease : public AnyMeans {
 public:
  using AnyMeans::AnyMeans;

  ReleasePlan plan(const ClientFacts& client) const override {
    ReleasePlan plan;
    if (options_.centre) plan_channel(plan, centre_channel(), client);
    plan_channel(plan, channel(client), client);
    return plan;
  }

  Result release_centre(const at::Tensor& features, const ClientFacts&,
                        const privacy::ReleaseContext& context) const override {
    const auto sums = [&] {
      NamedTensors values;
      values.push_back({kCentreName, features.sum(0, true)});
      values.push_back({kCountsName, at::full({1}, static_cast<double>(features.size(0)), at::kFloat)});
      return privacy::Contribution(std::move(values));
    };
    return {centre_channel().release_clear(context, sums), 0.0, at::Tensor()};
  }

  privacy::UploadShape upload_shape(const Broadcast& broadcast) const override {
    if (!options_.centre || find_tensor(broadcast.values, kCentreName).defined()) {
      return AnyMeans::upload_shape(broadcast);
    }
    return {.tensors = {{.name = kCentreName, .sizes = {1, shape_.width}}, {.name = kCountsName, .sizes = {1}}}};
  }

  Result release(const LabelledFeatures& records, const PrototypeSet&, const at::Tensor&, const ClientFacts& client,
                 const privacy::ReleaseContext& context) const override {
    return {channel(client).release_clear(context,
                                          [&] {
                                            const Cells cells = cells_of(records, records.cells);
                                            return privacy::Contribution(
                                                assembled({cells.means(records.values)}, cells.support));
                                          }),
            0.0, at::Tensor()};
  }

 private:
  static privacy::Channel centre_channel() {
    return privacy::Channel::in_the_clear(kCentreName, kNoNoise).times(1, "once, first");
  }

  privacy::Channel channel(const ClientFacts& client) const {
    return privacy::Channel::in_the_clear(kPrototypesName, kNoNoise)
        .times(prices_.releases(client), prices_.how_often());
  }
};

class MeanRelease : public AnyMeans {
 public:
  using AnyMeans::AnyMeans;

  ReleasePlan plan(const ClientFacts& client) const override {
    // Noise goes by the size of a class: what is shown is that of equal classes.
    const double size = std::max(1.0, static_cast<double>(client.records) / static_cast<double>(shape_.classes));
    const double root = std::sqrt(static_cast<double>(shape_.classes));
    const double bound = options_.radius;
    const int64_t coordinates = shape_.cells() * shape_.width;
    const auto mechanism = privacy::GroupwiseGaussian::with_stddevs(
        {{kPrototypesName, 1, coordinates, 2 * bound * root}}, {prices_.printed_multiplier(client) * 2 * bound / size});
    ReleasePlan plan;
    plan_channel(plan, channel(mechanism, client), client,
                 {.coordinates = coordinates, .bound = bound * root, .noise_stddev = mechanism.noise_stddev(0)});
    for (const privacy::Channel& selection : dimensions_.channels(client)) plan_channel(plan, selection, client);
    return plan;
  }

  Result release(const LabelledFeatures& records, const PrototypeSet& global, const at::Tensor& remembered,
                 const ClientFacts& client, const privacy::ReleaseContext& context) const override {
    const DimensionGroups parts = dimensions_.choose(records, global, remembered, client, context);
    std::vector<double> bounds = {options_.radius}, weights = {1.0};
    std::vector<at::Tensor> columns = {at::Tensor()};
    if (parts.first.defined()) {
      const double rho = static_cast<double>(parts.first.numel()) / static_cast<double>(shape_.width);
      columns = {parts.first, rest_of(parts.first, shape_.width)};
      bounds = {options_.radius * std::sqrt(rho), options_.radius * std::sqrt(1 - rho)};
      weights = {parts.weight, 1 - parts.weight};
    }
    at::Tensor all = at::empty_like(records.values);
    std::vector<at::Tensor> bounded;  // group by group
    for (size_t g = 0; g < bounds.size(); ++g) {
      const bool parted = columns[g].defined();
      bounded.push_back(clipped(parted ? records.values.index_select(1, columns[g]) : records.values, bounds[g]));
      parted ? all.index_copy_(1, columns[g], bounded[g]) : all.copy_(bounded[g]);
    }
    Cells cells = cells_of(records, records.cluster ? records.cluster(all) : records.cells);
    cells.support.columns = columns;
    const double sigma = prices_.printed_multiplier(client);
    std::vector<privacy::ClipRule> rules;
    std::vector<privacy::Group> groups;
    std::vector<double> stddevs;
    NamedTensors values;
    for (size_t g = 0; g < bounds.size(); ++g) {
      const at::Tensor means = cells.means(bounded[g]);
      for (int64_t k = 0; k < means.size(0); ++k) {
        const std::string name = fmt::format("{}.{}", k, groups.size());
        values.push_back({name, means[k].clone()});
        rules.push_back({name, 1, bounds[g]});
        groups.push_back({name, 1, means.size(1), 2 * bounds[g]});
        stddevs.push_back(sigma / std::sqrt(weights[g]) * 2 * bounds[g] /
                          cells.sizes[cells.support.held[k].item<int64_t>()].item<double>());
      }
    }
    const auto mechanism = privacy::GroupwiseGaussian::with_stddevs(std::move(groups), std::move(stddevs));
    privacy::Channel channel = this->channel(mechanism, client);
    std::vector<privacy::Disclosed> chosen;
    if (parts.first.defined()) {
      channel.noting(kDimensionsNoted, numbers_of(parts.first));
      chosen.push_back(privacy::Disclosed::noted(channel.terms(), kDimensionsNoted));
    }
    privacy::Release release = channel.release(context, [&] {
      return privacy::clip_whole(privacy::Contribution(std::move(values)), rules, prices_.terms().neighbours());
    });
    const Support& support = cells.support;
    const std::vector held_and_classes = {privacy::Disclosed::beside(channel.terms(), support.held),
                                          privacy::Disclosed::beside(channel.terms(), support.classes)};
    return {privacy::post_process(std::move(release), joined_means, support.clusters, support.cells, support.width,
                                  support.records, held_and_classes, chosen),
            mechanism.noise_norm(), parts.first};
  }

 private:
  std::string why_unproven() const {
    if (clusters_) return kClusterSupport;
    return prices_.terms().adjacency == privacy::Adjacency::kReplaceSameLabel ? "" : kSupport;
  }

  privacy::Channel channel(const privacy::GroupwiseGaussian& mechanism, const ClientFacts& client) const {
    return privacy::Channel::gaussian(kPrototypesName, privacy::Observer::kServer, mechanism,
                                      prices_.terms().neighbours())
        .times(prices_.releases(client), prices_.how_often())
        .unproven(why_unproven())
        .claiming({.by = privacy::kClaimRun, .epsilon = prices_.epsilon_for_values(client)});
  }
};

}  // namespace

std::unique_ptr<PrototypeRelease> make_mean_release(const PublicContext& context, const ReleaseOptions& options,
                                                    const PrototypeShape& shape, bool clusters) {
  return std::make_unique<MeanRelease>(context, options, shape, clusters);
}

std::unique_ptr<PrototypeRelease> make_clear_release(const PublicContext& context, const ReleaseOptions& options,
                                                     const PrototypeShape& shape, bool clusters) {
  return std::make_unique<ClearRelease>(context, options, shape, clusters);
}

}  // namespace sotto::methods

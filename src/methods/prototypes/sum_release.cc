#include "methods/prototypes/prototype_release.h"

#include <ATen/ATen.h>

#include <cmath>

namespace sotto::methods {
namespace {

// Sums whose dimensions were noised in two groups, as one tensor.
NamedTensors joined_sums(const NamedTensors& noisy, const privacy::Disclosed& dimensions, const int64_t& width) {
  const at::Tensor first = dimensions.value().to(at::kLong);
  at::Tensor sums = at::empty({noisy[0].value.size(0), width});
  sums.index_copy_(1, first, noisy[0].value);
  sums.index_copy_(1, rest_of(first, width), noisy[1].value);
  NamedTensors whole;
  whole.push_back({kSumsName, sums});
  whole.push_back(noisy[2]);
  return whole;
}

class SumRelease : public PrototypeRelease {
 public:
  SumRelease(const PublicContext& context, const ReleaseOptions& options, const PrototypeShape& shape)
      : PrototypeRelease(context, options, shape) {}

  ReleasePlan plan(const ClientFacts& client) const override {
    ReleasePlan plan;
    const double bound = options_.radius * static_cast<double>(client.records);
    const auto mechanism = privacy::GroupwiseGaussian::joint(prices_.multiplier(client), rule({}).groups());
    plan_channel(
        plan, channel(mechanism, client), client,
        {.coordinates = shape_.cells() * shape_.width, .bound = bound, .noise_stddev = mechanism.noise_stddev(0)});
    if (options_.centre) {
      plan_channel(
          plan, centre_channel(client), client,
          {.coordinates = shape_.width, .bound = bound, .noise_stddev = centre_mechanism(client).noise_stddev(0)});
    }
    for (const privacy::Channel& selection : dimensions_.channels(client)) plan_channel(plan, selection, client);
    return plan;
  }

  Result release(const LabelledFeatures& records, const PrototypeSet& global, const at::Tensor& remembered,
                 const ClientFacts& client, const privacy::ReleaseContext& context) const override {
    const DimensionGroups parts = dimensions_.choose(records, global, remembered, client, context);
    const privacy::CellRule rule = this->rule(parts);
    const auto mechanism = privacy::GroupwiseGaussian::joint(prices_.multiplier(client), rule.groups());
    privacy::Channel channel = this->channel(mechanism, client);
    if (parts.first.defined()) channel.noting(kDimensionsNoted, numbers_of(parts.first));
    privacy::Release release = channel.release(context, [&] {
      NamedTensors values;
      if (parts.first.defined()) {
        values.push_back({"A", records.values.index_select(1, parts.first)});
        values.push_back({"B", records.values.index_select(1, rest_of(parts.first, shape_.width))});
      } else {
        values.push_back({kSumsName, records.values});
      }
      values.push_back({kCountsName, records.cells});
      return privacy::sum_cells(privacy::Contribution(std::move(values)), rule);
    });
    if (parts.first.defined()) {
      release = privacy::post_process(std::move(release), joined_sums,
                                      privacy::Disclosed::noted(channel.terms(), kDimensionsNoted), shape_.width);
    }
    return {std::move(release), mechanism.noise_norm(1), parts.first};
  }

  Result release_centre(const at::Tensor& features, const ClientFacts& client,
                        const privacy::ReleaseContext& context) const override {
    const privacy::CellRule rule = centre_rule();
    const auto mechanism = privacy::GroupwiseGaussian::joint(prices_.centre_multiplier(client), rule.groups());
    privacy::Release release = centre_channel(client).release(context, [&] {
      NamedTensors values;
      values.push_back({kCentreName, features});
      values.push_back({kCountsName, at::zeros({features.size(0)}, at::kLong)});
      return privacy::sum_cells(privacy::Contribution(std::move(values)), rule);
    });
    return {std::move(release), mechanism.noise_norm(1), at::Tensor()};
  }

  privacy::UploadShape upload_shape(const Broadcast& broadcast) const override {
    if (options_.centre && !find_tensor(broadcast.values, kCentreName).defined()) {
      return {.tensors = {{.name = kCentreName, .sizes = {1, shape_.width}}, {.name = kCountsName, .sizes = {1}}}};
    }
    return {.tensors = {{.name = kSumsName, .sizes = {shape_.cells(), shape_.width}},
                        {.name = kCountsName, .sizes = {shape_.cells()}}}};
  }

  NoiseScale noise_scale() const override { return scale_of(rule({}), prices_.multiplier(prices_.least_budget())); }

  NoiseScale centre_noise_scale() const override {
    if (!options_.centre) return {};
    return scale_of(centre_rule(), prices_.centre_multiplier(prices_.least_budget()));
  }

 private:
  static NoiseScale scale_of(const privacy::CellRule& rule, double multiplier) {
    const auto groups = rule.groups();
    return {multiplier * groups.front().sensitivity, multiplier * groups.back().sensitivity};
  }

  privacy::CellRule rule(const DimensionGroups& parts) const {
    privacy::CellRule rule;
    rule.cells = shape_.cells();
    rule.by_label = shape_.anchors == 1;
    rule.adjacency = prices_.terms().adjacency;
    rule.count_share = options_.count_share;
    if (!parts.first.defined()) {
      rule.parts = {{kSumsName, shape_.width, options_.radius, 1.0}};
      return rule;
    }
    const double rho = static_cast<double>(parts.first.numel()) / static_cast<double>(shape_.width);
    rule.parts = {{"A", parts.first.numel(), options_.radius * std::sqrt(rho), parts.weight},
                  {"B", shape_.width - parts.first.numel(), options_.radius * std::sqrt(1 - rho), 1 - parts.weight}};
    return rule;
  }

  privacy::CellRule centre_rule() const {
    privacy::CellRule rule = this->rule({});
    rule.cells = 1;
    rule.by_label = false;
    rule.parts.front().name = kCentreName;
    return rule;
  }

  privacy::GroupwiseGaussian centre_mechanism(const ClientFacts& client) const {
    return privacy::GroupwiseGaussian::joint(prices_.centre_multiplier(client), centre_rule().groups());
  }

  privacy::Channel channel(const privacy::GroupwiseGaussian& mechanism, const ClientFacts& client) const {
    return privacy::Channel::gaussian(kPrototypesName, privacy::Observer::kServer, mechanism,
                                      prices_.terms().neighbours())
        .times(prices_.releases(client), prices_.how_often());
  }

  privacy::Channel centre_channel(const ClientFacts& client) const {
    return privacy::Channel::gaussian(kCentreName, privacy::Observer::kServer, centre_mechanism(client),
                                      prices_.terms().neighbours())
        .times(1, "once, first");
  }
};

}  // namespace

std::unique_ptr<PrototypeRelease> make_sum_release(const PublicContext& context, const ReleaseOptions& options,
                                                   const PrototypeShape& shape) {
  return std::make_unique<SumRelease>(context, options, shape);
}

}  // namespace sotto::methods

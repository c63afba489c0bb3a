#include "methods/prototypes/dimension_groups.h"

#include "methods/prototypes/dimension_score.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

namespace sotto::methods {
namespace {

constexpr const char* kDimensions = "dimensions";
constexpr const char* kOracle = "the selection \"oracle\" reads scores of private records";

}  // namespace

std::vector<double> numbers_of(const at::Tensor& dimensions) {
  const at::Tensor numbers = dimensions.to(at::kDouble).contiguous();
  return {numbers.data_ptr<double>(), numbers.data_ptr<double>() + numbers.numel()};
}

at::Tensor rest_of(const at::Tensor& first, int64_t width) {
  return at::ones({width}, at::kBool).index_fill_(0, first, false).nonzero().squeeze(1);
}

DimensionChooser::DimensionChooser(const PublicContext& context, const ReleaseOptions& options,
                                   const PrototypeShape& shape, const ReleasePrices& prices)
    : spec_(context.spec), options_(options), shape_(shape), prices_(prices) {}

int64_t DimensionChooser::first_width() const {
  return std::clamp<int64_t>(static_cast<int64_t>(std::ceil(options_.rho * static_cast<double>(shape_.width))), 1,
                             shape_.width - 1);
}

double DimensionChooser::paper_weight() const {
  const double first = std::sqrt(static_cast<double>(first_width()) / static_cast<double>(shape_.width));
  const double rest = std::sqrt(1 - first * first);
  return rest / (first + rest);
}

privacy::Channel DimensionChooser::oracle_channel(const ClientFacts& client) const {
  return privacy::Channel::in_the_clear(kDimensions, kOracle).times(prices_.releases(client), prices_.how_often());
}

bool DimensionChooser::picks_by_gumbel() const {
  return options_.selection_noise == SelectionNoise::kGumbel ||
         (options_.selection_noise == SelectionNoise::kAuto && !spec_.as_printed());
}

privacy::Channel DimensionChooser::selection_channel(const ClientFacts& client) const {
  const auto channel_of = [&](auto mechanism) {
    return privacy::Channel::top_k(kDimensions, privacy::Observer::kServer, mechanism, prices_.terms().neighbours());
  };
  const int64_t picks = first_width();
  privacy::Channel channel =
      picks_by_gumbel()
          ? channel_of(privacy::GumbelTopK(shape_.width, options_.high, picks, prices_.pick_epsilon(client, picks)))
          : channel_of(privacy::LaplaceTopK(shape_.width, options_.high, picks, prices_.selection_epsilon(client)));
  channel.times(prices_.selections(client), prices_.selections(client) == 1 ? "once" : "once per participation");
  if (spec_.as_printed()) channel.claiming({.by = privacy::kClaimEach, .epsilon = prices_.selection_epsilon(client)});
  return channel;
}

at::Tensor DimensionChooser::select_privately(const LabelledFeatures& records, const ClientFacts& client,
                                              const privacy::ReleaseContext& context) const {
  const privacy::Release chosen = selection_channel(client).release(context, [&] {
    NamedTensors scores;
    scores.push_back({"scores", dimension_scores(records.values, records.labels, shape_.classes, options_.zeta)});
    return privacy::clamp_each(privacy::Contribution(std::move(scores)), options_.high);
  });
  return chosen.values().front().value.clone();
}

DimensionGroups DimensionChooser::choose(const LabelledFeatures& records, const PrototypeSet& global,
                                         const at::Tensor& remembered, const ClientFacts& client,
                                         const privacy::ReleaseContext& context) const {
  if (!options_.parted()) return {};
  DimensionGroups parts;
  const int64_t width = first_width();
  at::Tensor known;  // how the classes differ, dimension by dimension, as far as is public
  if (!global.empty()) known = between_class_variance(global.values, global.classes, shape_.classes);
  if (options_.selection == Selection::kFree) {
    if (!known.defined()) return {};
    parts.first = largest(known, width);
  } else if (options_.selection == Selection::kRandom) {
    RandomStream stream(spec_.seed, "random-dimensions", static_cast<uint64_t>(context.round),
                        static_cast<uint64_t>(context.client));
    parts.first = at::tensor(stream.sample_without_replacement(shape_.width, width), at::kLong);
  } else if (options_.selection == Selection::kOracle) {
    const privacy::Release chosen = oracle_channel(client).release_clear(context, [&] {
      NamedTensors indices;
      indices.push_back(
          {"indices", largest(dimension_scores(records.values, records.labels, shape_.classes, options_.zeta), width)});
      return privacy::Contribution(std::move(indices));
    });
    parts.first = chosen.values().front().value.clone();
  } else if (options_.selection == Selection::kOnce && remembered.defined()) {
    parts.first = remembered;
  } else {
    parts.first = select_privately(records, client, context);
  }
  const double rho = static_cast<double>(width) / static_cast<double>(shape_.width);
  parts.weight = options_.weighting == Weighting::kPaper ? paper_weight() : rho;
  if (options_.weighting == Weighting::kBest && known.defined()) {
    const double total = known.sum().item<double>();
    const double share = total > 0 ? known.index_select(0, parts.first).sum().item<double>() / total : rho;
    const double first = std::sqrt(share * rho), rest = std::sqrt((1 - share) * (1 - rho));
    // A weight of 0 or 1 would leave one group without any noise to speak of and drown the other.
    parts.weight = std::clamp(first / (first + rest), 0.01, 0.99);
  }
  return parts;
}

std::vector<privacy::Channel> DimensionChooser::channels(const ClientFacts& client) const {
  if (options_.parted() && options_.selection == Selection::kOracle) return {oracle_channel(client)};
  if (options_.pays_for_selection()) return {selection_channel(client)};
  return {};
}

}  // namespace sotto::methods

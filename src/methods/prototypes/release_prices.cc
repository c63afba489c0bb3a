#include "methods/prototypes/release_prices.h"

#include "base/error.h"
#include "privacy/calibration.h"

#include <algorithm>
#include <cmath>

namespace sotto::methods {

ReleasePrices::ReleasePrices(const PublicContext& context, const ReleaseOptions& options)
    : spec_(context.spec),
      options_(options),
      most_participations_(std::max<int64_t>(1, context.facts.most_participations)) {}

int64_t ReleasePrices::releases(const ClientFacts& client) const {
  return options_.once ? 1 : std::max<int64_t>(client.participations - (options_.closing_round ? 1 : 0), 1);
}

std::string ReleasePrices::how_often() const {
  return options_.once ? "once" : "once per participation";
}

int64_t ReleasePrices::selections(const ClientFacts& client) const {
  return options_.selection == Selection::kOnce ? 1 : releases(client);
}

double ReleasePrices::selection_epsilon(const ClientFacts& client) const {
  return options_.split * client.epsilon / static_cast<double>(selections(client));
}

double ReleasePrices::epsilon_for_values(const ClientFacts& client) const {
  return options_.pays_for_selection() ? (1 - options_.split) * client.epsilon : client.epsilon;
}

double ReleasePrices::pick_epsilon(const ClientFacts& client, int64_t picks) const {
  // All that is released besides costs as much as these Gaussians, however it is parted.
  const double z = privacy::noise_multiplier_for(epsilon_for_values(client), spec_.privacy->delta, releases(client),
                                                 1.0, spec_.privacy->adjacency);
  return privacy::pick_epsilon_for(client.epsilon, spec_.privacy->delta, picks * selections(client), z,
                                   releases(client));
}

double ReleasePrices::multiplier(const ClientFacts& client) const {
  const double z = privacy::noise_multiplier_for(epsilon_for_values(client), spec_.privacy->delta, releases(client),
                                                 1.0, spec_.privacy->adjacency);
  return z / std::sqrt(1 - (options_.centre ? options_.centre_share : 0.0) - options_.encoder_share);
}

double ReleasePrices::printed_multiplier(const ClientFacts& client) const {
  const double epsilon = epsilon_for_values(client), delta = spec_.privacy->delta;
  const auto printed = privacy::printed_noise_multiplier(epsilon, delta, releases(client));
  if (!printed) {
    fail_user("privacy.epsilon: {} is below what the paper's accounting can certify at δ = {}", epsilon, delta);
  }
  return *printed;
}

// Gaussians add up by 1/z²: the centre has its share of what one release could have, prototypes share the rest.
double ReleasePrices::centre_multiplier(const ClientFacts& client) const {
  return privacy::noise_multiplier_for(epsilon_for_values(client), spec_.privacy->delta, 1, 1.0,
                                       spec_.privacy->adjacency) /
         std::sqrt(options_.centre_share);
}

double ReleasePrices::encoder_multiplier(const ClientFacts& client, int64_t touches) const {
  return privacy::noise_multiplier_for(epsilon_for_values(client), spec_.privacy->delta, touches * releases(client),
                                       1.0, spec_.privacy->adjacency) /
         std::sqrt(options_.encoder_share);
}

ClientFacts ReleasePrices::least_budget() const {
  return {.records = 0, .participations = most_participations_, .epsilon = spec_.privacy->least_budget()};
}

}  // namespace sotto::methods

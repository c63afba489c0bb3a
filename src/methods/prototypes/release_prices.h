// How a client's budget is dealt to the releases of a prototype method.
#pragma once

#include "methods/context.h"
#include "methods/prototypes/release_options.h"

#include <cstdint>
#include <string>

namespace sotto::methods {

class ReleasePrices {
 public:
  ReleasePrices(const PublicContext& context, const ReleaseOptions& options);

  // How many releases a client makes in the whole run. At least one: what is planned for a client that takes part in
  // nothing is priced all the same.
  int64_t releases(const ClientFacts& client) const;
  std::string how_often() const;
  int64_t selections(const ClientFacts& client) const;
  double selection_epsilon(const ClientFacts& client) const;
  // ε of one of the picks of each selection, if the whole budget is to be spent.
  double pick_epsilon(const ClientFacts& client, int64_t picks) const;
  // What selections leave.
  double epsilon_for_values(const ClientFacts& client) const;

  // Noise multipliers: of a sound release, of one as the paper counts (a UserError where its accounting cannot), of the
  // centre, and of each of `touches` steps per release with which the encoder may be trained.
  double multiplier(const ClientFacts& client) const;
  double printed_multiplier(const ClientFacts& client) const;
  double centre_multiplier(const ClientFacts& client) const;
  double encoder_multiplier(const ClientFacts& client, int64_t touches) const;

  // A client with the least budget that takes part most often.
  ClientFacts least_budget() const;
  const privacy::PrivacyTerms& terms() const { return *spec_.privacy; }

 private:
  const RunSettings& spec_;
  ReleaseOptions options_;
  int64_t most_participations_;
};

}  // namespace sotto::methods

// policy.toml: what the owner of some records lets leave their home. Where nothing is written, nothing is allowed.
//
//   [data]                                 where the records are: the keys of a config's [data]; a schema is the plan's
//   [budget]                               over all federations that touch these records (privacy/home.h)
//   epsilon = 4.0    delta = 1e-6    adjacency = "zero-out"    unit = "record"    observer = "server"
//   per_day = 0.5                          a brake, not a guarantee: what may be spent in 24 hours
//   [allow]
//   methods = ["ldp-fedavg", "fedproto"]
//   variants = ["sound"]
//   trust = ["local"]                      local: nobody sees anything without noise; central: the server does
//   unproven = false                       releases of which nothing can be proven
//   declare = ["records"]                  facts the owner agrees to make public
//   evaluation = "local"                   released: how many held-out records a model gets right may leave, with noise
//   least_cohort = 4                       clients in a round, on average
//   most_participations = 50
//   noise = "secure"
//   [server]
//   address = "federation.example:7443"    name = "hospital-1"
#pragma once

#include "base/error.h"
#include "data/options.h"
#include "federation/federation_plan.h"
#include "privacy/home.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace sotto::member {

struct Policy {
  data::DataOptions data;
  privacy::PrivacyTerms budget;
  double per_day = 0;  // 0: no brake
  std::vector<std::string> methods;
  std::vector<std::string> variants;
  std::vector<std::string> trust;
  bool unproven = false;
  std::vector<std::string> declare;
  bool released_evaluation = false;
  int64_t least_cohort = 1;
  int64_t most_participations = 0;
  privacy::Generator noise = privacy::Generator::kSecure;
  std::string address;
  std::string name;
};

// Of the home in `folder`. No file, or a mistake in it, is a UserError.
Policy read_policy(const std::filesystem::path& folder);

// A federation that the owner's policy does not allow; one line that says what would have to change.
class NotAllowed : public UserError {
 public:
  using UserError::UserError;
};

// Whether somebody who holds so many records may take part.
void require_allowed(const Policy& policy, const federation::FederationPlan& plan, int64_t records);

// What the client will release before the budget's observer over the whole federation.
privacy::Tally promised(const Policy& policy, const federation::FederationPlan& plan, int64_t client, int64_t records);

}  // namespace sotto::member

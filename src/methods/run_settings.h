// What a method, its clients and its server go by: the settings that determine a run's result.
#pragma once

#include "data/options.h"
#include "models/options.h"
#include "privacy/terms.h"

#include <any>
#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace sotto::methods {

// As a paper prints a method, or in the form that can be proven.
enum class Variant { kSound, kPaper };
constexpr auto choices(Variant) {
  return std::to_array<settings::Choice<Variant>>({{Variant::kSound, "sound"}, {Variant::kPaper, "paper"}});
}

enum class CohortSampling {
  kFixed,    // exactly `cohort` clients, who are public
  kPoisson,  // each with probability cohort/clients
  kSecret,   // exactly `cohort` clients, whom nobody but the server may know
  kCyclic    // exactly `cohort` clients, in turn: who takes part does so again when all others have
};
constexpr auto choices(CohortSampling) {
  return std::to_array<settings::Choice<CohortSampling>>({{CohortSampling::kFixed, "fixed"},
                                                          {CohortSampling::kPoisson, "poisson"},
                                                          {CohortSampling::kSecret, "secret"},
                                                          {CohortSampling::kCyclic, "cyclic"}});
}
// Whether chance in who takes part is counted on, so that nobody else may know it.
constexpr bool hides_cohorts(CohortSampling sampling) {
  return sampling == CohortSampling::kPoisson || sampling == CohortSampling::kSecret;
}

enum class Optimizer { kSgd, kAdam, kAdamW };
constexpr auto choices(Optimizer) {
  return std::to_array<settings::Choice<Optimizer>>(
      {{Optimizer::kSgd, "sgd"}, {Optimizer::kAdam, "adam"}, {Optimizer::kAdamW, "adamw"}});
}

enum class StateStorage { kMemory, kDisk };
constexpr auto choices(StateStorage) {
  return std::to_array<settings::Choice<StateStorage>>(
      {{StateStorage::kMemory, "memory"}, {StateStorage::kDisk, "disk"}});
}

// [federation]
struct FederationOptions {
  int64_t cohort = 0;  // clients per round; 0 = all (Poisson: the expected number)
  CohortSampling sampling = CohortSampling::kFixed;
  int64_t local_epochs = 1;
  int64_t batch = 32;
  double lr = 0.05;
  Optimizer optimizer = Optimizer::kSgd;
  double momentum = 0.0;
  double weight_decay = 0.0;
  int64_t fine_tune = 0;                       // epochs of each client's own model on top of the global one; 0: none
  double fine_tune_lr = 0.0;                   // of those; 0: lr
  int64_t eval_every = 1;                      // evaluate after every so many rounds, and always after the last
  int64_t eval_clients = 0;                    // evaluate on this many clients, the same each time; 0 = all
  int64_t global_test = 0;                     // test every client's model on so many held-out records of all clients
  StateStorage state = StateStorage::kMemory;  // where clients' personal state lives between rounds

  // Descent by the gradient alone: what noise does to the model is then known in closed form.
  bool plain_descent() const { return optimizer == Optimizer::kSgd && momentum == 0 && weight_decay == 0; }

  bool operator==(const FederationOptions&) const = default;
};

FederationOptions read_federation_options(settings::Section section, int64_t clients);
nlohmann::json to_json(const FederationOptions& options);

struct RunSettings {
  uint64_t seed = 1;
  int64_t rounds = 10;
  int64_t most_rounds = 0;  // that the noise is calibrated for, so that the run can be extended; 0 = rounds
  data::DataOptions data;
  models::ModelOptions model;
  FederationOptions federation;
  std::string method = "fedavg";
  Variant variant = Variant::kSound;
  std::any options;                   // the method's own, as its reader made them: options_of<T>
  std::string method_options = "{}";  // the same as canonical JSON, to be written and hashed
  std::optional<privacy::PrivacyTerms> privacy;

  // All rounds that the run may ever have: whatever a method makes of the number of rounds, it makes of this one.
  int64_t planned_rounds() const { return most_rounds == 0 ? rounds : most_rounds; }
  bool as_printed() const { return variant == Variant::kPaper; }
  // Those of the method whose options are of this type.
  template <typename Options>
  const Options& options_of() const {
    return std::any_cast<const Options&>(options);
  }
};

// How many clients a round asks, on average.
inline int64_t expected_cohort(const RunSettings& settings) {
  return settings.federation.cohort == 0 ? settings.data.clients : settings.federation.cohort;
}

// A client that takes part in round t does so again in round t + this at the earliest.
inline int64_t least_separation(const RunSettings& settings) {
  return settings.federation.sampling == CohortSampling::kCyclic ? settings.data.clients / expected_cohort(settings)
                                                                 : 1;
}

}  // namespace sotto::methods

// One kind of release, described once: what leaves, who is the first to see it, by which mechanism, between which
// neighbours, how often, and what its paper claims.
//
// A method's plan is a list of channels, and its clients and server release through the same ones: what is announced is
// what is done. A release is paid for before anything is computed for it, so that a refusal costs nothing.
#pragma once

#include "privacy/mechanisms/counts.h"
#include "privacy/mechanisms/gaussian.h"
#include "privacy/mechanisms/gumbel.h"
#include "privacy/mechanisms/laplace.h"
#include "privacy/release.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace sotto::privacy {

// How many steps a release is made of.
struct StepCount {
  int64_t touches = 1;  // of one record, at most
  int64_t draws = 1;    // in all: each has noise of its own
};

// How loud the noise of a release is: it falls on `coordinates` numbers of a value whose norm is at most `bound`, and
// the model is moved by `summands` such values over the run, each with noise of its own.
struct NoiseReach {
  int64_t coordinates = 0;
  double bound = 0;
  double noise_stddev = 0;
  double summands = 1;
};

class Channel {
 public:
  // Values as they are, for what has no finite sensitivity. The ledger shows ε = ∞ with the reason, and so does every
  // report.
  static Channel in_the_clear(std::string what, std::string reason);
  // Bounded values for a trusted server: ε = ∞ for the server, and nothing for everybody else until it releases them.
  static Channel to_trusted_server(std::string what, const TrustedServer& server);
  static Channel gaussian(std::string what, Observer observer, GroupwiseGaussian mechanism,
                          const Neighbours& neighbours, const StepCount& steps = {});
  static Channel laplace(std::string what, Observer observer, LaplaceMechanism mechanism, const Neighbours& neighbours);
  static Channel top_k(std::string what, Observer observer, LaplaceTopK mechanism, const Neighbours& neighbours);
  static Channel top_k(std::string what, Observer observer, GumbelTopK mechanism, const Neighbours& neighbours);
  static Channel counts(std::string what, Observer observer, DiscreteGaussian mechanism, const Neighbours& neighbours);

  // How often a client makes it (or is part of it) in the whole run; `how_often` says so for people.
  Channel& times(int64_t count, std::string how_often);
  Channel& claiming(Claim claim);
  // No finite ε can be proven, whatever the noise.
  Channel& unproven(std::string why);
  // Each record (or client) takes part in a step with this probability (Poisson).
  Channel& sampled_at(double rate);
  // A Gaussian of a cohort of fixed size that is drawn in secret: this share of all clients (or records).
  Channel& of_cohort(double share);
  // Each record is in one of so many batches, drawn in secret for every step.
  Channel& allocated_to(int64_t batches);
  // A number that travels with the release: it must follow from settings and declared facts alone, and the ledger's row
  // holds it. Numbers only: nothing that could carry records.
  Channel& declaring(std::string name, double value);
  // Adds to what the ledger notes of the mechanism.
  Channel& noting(const std::string& key, const std::vector<double>& values);
  Channel& reaching(const NoiseReach& reach);

  // The ledger's row, but for round, client and generator.
  const Event& terms() const { return terms_; }
  int64_t times() const { return times_; }
  const std::string& how_often() const { return how_often_; }
  const NoiseReach& reach() const { return reach_; }
  // Whether a row of the ledger is a release of this kind.
  bool makes(const Event& event) const;

  // Pays, then computes, then adds the noise. BudgetSpent: nothing was computed.
  Release release(const ReleaseContext& context, const std::function<Bounded()>& compute) const;
  // The same for each of these clients, at a trusted server; nothing if there is none.
  std::optional<Release> release_for(std::span<const int64_t> clients, const ReleaseContext& context,
                                     const std::function<Bounded()>& compute) const;
  Release release_clear(const ReleaseContext& context, const std::function<Contribution()>& compute) const;
  Trusted<Bounded> hand_over(const ReleaseContext& context, const std::function<Bounded()>& compute) const;

  // For mechanisms that make one release of many steps: before the first, and of what came out of the last.
  Receipt pay(const ReleaseContext& context) const;
  void append_declared(NamedTensors& values) const;

 private:
  using Mechanism =
      std::variant<std::monostate, GroupwiseGaussian, LaplaceMechanism, LaplaceTopK, GumbelTopK, DiscreteGaussian>;

  Channel(std::string what, Observer observer, Event terms, Mechanism mechanism);
  Release randomise(Receipt receipt, const ReleaseContext& context, const std::function<Bounded()>& compute) const;

  Event terms_;
  Mechanism mechanism_;
  int64_t times_ = 1;
  std::string how_often_;
  std::vector<std::pair<std::string, double>> declared_;
  NoiseReach reach_;
};

}  // namespace sotto::privacy

// The Gaussian mechanism for sums that are released round after round, with noise that takes part of itself back.
//
// Round t releases x_t + w_t, w = C⁻¹Z, C a BandedStrategy: later rounds cancel some of the noise of earlier ones, so that
// the sum of all rounds, which is what a model is made of, has far less of it than if every round had noise of its own.
// Who takes part in rounds at least `band` apart pays for each as for one Gaussian of the multiplier asked for.
//
// What is computed is the Gaussian mechanism (gaussian.h, with its grid) on
//
//   C_tt x_t - Σ_{s<t} C_ts w_s,
//
// and the release is that over C_tt. So the noise w of the last band - 1 rounds is kept. Whoever knows it can take it
// off the releases: it is as secret as the sums themselves, and only a trusted server may hold it.
//
// Proof: docs/proofs/banded-noise.md
#pragma once

#include "privacy/channel.h"
#include "privacy/mechanisms/banded_strategy.h"

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace sotto::privacy {

struct BandedTerms {
  int64_t rounds = 1;      // of the whole run
  int64_t separation = 1;  // a client that takes part in round t does so again in t + separation at the earliest
  int64_t band = 1;        // at most that, and at most all rounds
};

class BandedGaussian {
 public:
  // `group` is one tensor with what one participation may move in it. A UserError if the band is longer than separation
  // or rounds.
  BandedGaussian(double noise_multiplier, const Group& group, const BandedTerms& terms);

  // One participation; its row says band, separation and rounds.
  Channel channel(std::string what, Observer observer, const Neighbours& neighbours) const;
  // What independent noise in every round would have to be for the same noise in the sum of all rounds.
  double stddev_per_round() const;

  // Every client of the cohort pays, then the sum is computed and released; nothing if nobody takes part. Rounds must
  // come in order. A client that comes back too early is an internal error.
  //
  // Noise that is not replayed cannot be drawn again: where a round is released a second time after restore(), those of
  // earlier rounds whose values still show in it pay once more.
  std::optional<Release> release(const Channel& channel, std::span<const int64_t> cohort, const ReleaseContext& context,
                                 const std::function<Bounded()>& sum);

  // The noise that later rounds take back, and who took part when: for the server's own checkpoint alone.
  NamedTensors state() const;
  void restore(const NamedTensors& state);

 private:
  struct Past {
    int64_t round = 0;
    at::Tensor noise;  // w, doubles
    std::vector<int64_t> cohort;
  };
  bool is_repeated(const Channel& channel, const ReleaseContext& context) const;
  void charge_earlier_cohorts(const Channel& channel, const ReleaseContext& context) const;
  void require_separation(std::span<const int64_t> cohort) const;

  Group group_;  // what a sum is bounded by
  BandedTerms terms_;
  BandedStrategy strategy_;
  GroupwiseGaussian gaussian_;
  std::deque<Past> past_;  // of the last band - 1 rounds, oldest first
  bool restored_ = false;
};

}  // namespace sotto::privacy

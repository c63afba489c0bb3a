// DP-SGD as one mechanism: many noisy steps, one release.
//
// Every step clips each record's gradient, sums, adds Gaussian noise and hands the result to an optimiser. Whatever is
// computed from noisy gradients and public values is post-processing, so the trained parameters are the release, and
// the ledger has one row for it: the step's event × how often a record is touched.
//
// The parameters at the start must be public or made of releases (a broadcast; a personal head that was itself trained
// this way). A head trained without noise on the same records would make every gradient depend on every record, and the
// sensitivity claimed here would be false.
//
// Proof: docs/proofs/noisy-descent.md
#pragma once

#include "data/dataset.h"
#include "models/flat.h"
#include "models/layer_parameters.h"
#include "models/model.h"
#include "privacy/channel.h"
#include "privacy/dpsgd/clipper.h"
#include "privacy/dpsgd/views.h"
#include "privacy/mechanisms/gaussian.h"
#include "privacy/mechanisms/quantile.h"
#include "privacy/release.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace sotto::privacy {

enum class Sampling {
  kDisjoint,  // epochs of disjoint batches: a record is touched once per epoch
  kPoisson,   // every step takes each record with probability `rate`: amplification
  kAllocated  // epochs in which every record draws its batch; where records are one-sided, kDisjoint is the same
};

// Poisson batches in which records have rates of their own.
struct RecordRates {
  std::vector<double> rates = {};                 // that there are
  std::vector<double> shares = {};                // declared: which part of the records has each; they sum to 1
  std::function<size_t(int64_t record)> of = {};  // the number of the rate of a row, which must not move

  double largest() const;
  double mean() const;  // over the declared shares
};

// A layer's own bound, and its share of the budget relative to other layers'.
struct LayerShare {
  double clip = 0;  // 0: the layer is neither trained nor released
  double weight = 0;  // 0 in all layers: they are bounded together, Σ (norm_j/clip_j)² ≤ 1, and each has noise z·clip_j

  bool chosen() const { return clip > 0; }
};

// All of it is public.
struct DescentPlan {
  int64_t records = 0;  // the declared number of records
  int64_t batch = 32;   // expected
  int64_t epochs = 1;
  Sampling sampling = Sampling::kDisjoint;
  double rate = 1.0;  // kPoisson
  // kPoisson, instead of `rate`, which then says no more than how many steps an epoch has.
  std::optional<RecordRates> record_rates = {};
  double clip = 1.0;
  bool normalise = false;  // every gradient is scaled to `clip` (clipper.h): a bound that needs no choice
  // Instead of `clip`, one for each of models::trainable_layers. Not together with `quantile`.
  std::vector<LayerShare> layers = {};
  double noise_multiplier = 0.0;            // of every step
  std::optional<QuantileOptions> quantile;  // norms are told, for a bound that follows this quantile of them
  Neighbours neighbours;

  bool bounds_layers_together() const;
  // Whether every record draws its batch of an epoch on its own.
  bool allocates() const;
  int64_t steps() const;    // in all
  int64_t touches() const;  // of one record, at most (at `rate`)
  // Among how many batches a record is allocated at random, as it is accounted for: somewhat fewer than there are, so
  // that clients of similar size cost the same. 1 where batches are not drawn for each record on its own.
  int64_t allocation() const;
  double expected_batch() const;
};

struct DescentResult {
  // The shared parameters, what is known of the norms if the bound is learnt, and what the channel declares.
  Release release;
  double loss = 0;  // private: mean loss over the records seen
  int64_t samples = 0;
};

class NoisyDescent {
 public:
  // The model's trainable parameters are all trained with noise; the shared ones are released.
  NoisyDescent(models::Model& model, const models::FlatParameters& flat);

  // From the next run on a record's gradient is the mean over these views of it. Records must be images.
  void average_views(const ViewOptions& views) { views_ = views; }

  // What `run` releases, to the server, and what that costs; where records differ, for those of the largest rate.
  Channel channel(const DescentPlan& plan, std::string what) const;
  // Of the noise in one step's mean gradient, expected.
  double noise_norm(const DescentPlan& plan) const;
  // How many numbers are trained.
  int64_t coordinates(const DescentPlan& plan) const;

  // Pays for the plan's channel, then trains. `update` applies the gradient in flat.gradient() to flat.values().
  // `indices` are the client's records. Noise and Poisson batches come from the context's generator.
  DescentResult run(const DescentPlan& plan, const Channel& channel, const data::Records& records,
                    const at::Tensor& indices, const ReleaseContext& context, const std::function<void()>& update);

 private:
  GroupwiseGaussian mechanism(const DescentPlan& plan, double clip) const;
  // Makes the clipper for the layers that are trained.
  void prepare_clipper(const DescentPlan& plan);
  void set_bounds(const DescentPlan& plan, double clip);
  PerExampleClipper::Losses losses_over(Views views) const;
  // Before a record is looked at: which step is the first with records is a secret.
  void choose_slots(const data::Records& records);
  // Those of trained layers, or the whole gradient.
  NamedTensors gradients(const DescentPlan& plan, const at::Tensor& sum) const;
  NamedTensors released(const DescentPlan& plan) const;

  models::Model& model_;
  const models::FlatParameters& flat_;
  std::vector<models::LayerParameters> layers_;
  std::unique_ptr<PerExampleClipper> clipper_;
  std::vector<bool> clipped_;  // which layers the clipper is for; empty: all of them as one
  bool clipped_together_ = false, normalised_ = false;
  ViewOptions views_;
  data::Batch batch_;
};

}  // namespace sotto::privacy

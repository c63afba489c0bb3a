// DP-SGD as one mechanism: many noisy steps, one release.
//
// Every step clips each record's gradient, sums, adds Gaussian noise and hands the result to an optimiser. Whatever is
// computed from noisy gradients and public values is post-processing, so the trained parameters are the release, and
// the ledger has one row for it: the step's event × how often a record is touched.
//
// The parameters at the start must be public or made of releases (a broadcast; a personal head that was itself trained
// this way). A head trained without noise on the same records would make every gradient depend on every record, and the
// sensitivity claimed here would be false.
#pragma once

#include "data/dataset.h"
#include "models/flat.h"
#include "models/model.h"
#include "privacy/dpsgd/clipper.h"
#include "privacy/mechanisms/gaussian.h"
#include "privacy/mechanisms/quantile.h"
#include "privacy/release.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace sotto::privacy {

enum class Sampling {
  kDisjoint,  // epochs of disjoint batches: a record is touched once per epoch
  kPoisson    // every step takes each record with probability `rate`: amplification
};

// All of it is public.
struct DescentPlan {
  int64_t records = 0;  // the declared number of records
  int64_t batch = 32;   // expected
  int64_t epochs = 1;
  Sampling sampling = Sampling::kDisjoint;
  double rate = 1.0;  // kPoisson
  double clip = 1.0;
  double noise_multiplier = 0.0;            // of every step
  std::optional<QuantileOptions> quantile;  // norms are told, for a bound that follows this quantile of them
  Neighbours neighbours;
  NamedTensors declared = {};  // public values that travel with the release

  int64_t steps() const;    // in all
  int64_t touches() const;  // of one record, at most (at `rate`)
  double expected_batch() const;
};

struct DescentResult {
  Release release;  // the shared parameters, what is known of the norms if the bound is learnt, and what is declared
  double loss = 0;  // private: mean loss over the records seen
  int64_t samples = 0;
};

class NoisyDescent {
 public:
  // The model's trainable parameters are all trained with noise; the shared ones are released.
  NoisyDescent(models::Model& model, const models::FlatParameters& flat);

  // What `run` will cost.
  Event event(const DescentPlan& plan, const ReleaseContext& context, const std::string& what) const;
  // Of one step's summed gradient, at the plan's own bound.
  double noise_stddev(const DescentPlan& plan) const { return mechanism(plan, plan.clip).noise_stddev(0); }

  // `update` applies the gradient in flat.gradient() to flat.values(). `indices` are the client's records. Noise and
  // Poisson batches come from the context's generator.
  DescentResult run(const DescentPlan& plan, Receipt receipt, const data::Records& records, const at::Tensor& indices,
                    const ReleaseContext& context, const std::function<void()>& update);

 private:
  GroupwiseGaussian mechanism(const DescentPlan& plan, double clip) const;

  models::Model& model_;
  const models::FlatParameters& flat_;
  std::unique_ptr<PerExampleClipper> clipper_;
  data::Batch batch_;
};

}  // namespace sotto::privacy

// Clients that train by DP-SGD and send their models: what PAC-DP and its local baselines share.
//
// Every member of the family makes the same releases at the same price; they differ in how the clipping bound is
// chosen, and in how the budget is dealt to rounds and layers. A member is a reader of options that says how.
#pragma once

#include "methods/dpsgd/layer_shares.h"
#include "methods/dpsgd/noisy_model.h"
#include "methods/method.h"
#include "privacy/dpsgd/noisy_descent.h"

#include <any>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace sotto::methods {

// What a bound may depend on: all of it is public.
struct BoundQuestion {
  double epsilon = 0;          // the client's budget
  double signal_to_noise = 0;  // of one step: a gradient at the bound, over the norm of the noise
  int64_t round = 1;           // from 1
  int64_t rounds = 1;
};

struct NoisyTraining {
  double clip = 1.0;                                       // the bound, or where it starts if it is learnt
  std::function<double(const BoundQuestion&)> bound = {};  // instead of `clip`
  std::optional<privacy::QuantileOptions> quantile = {};   // the bound is learnt
  privacy::Sampling sampling = privacy::Sampling::kDisjoint;
  // Sets the plan's multiplier and rates, where they are not those of one client's budget at one rate for all records.
  std::function<void(const PublicContext&, const ClientFacts&, privacy::DescentPlan&)> price = {};
  // The same for variant = "paper", where that has rates of its own; the release then claims the client's budget.
  std::function<void(const PublicContext&, const ClientFacts&, privacy::DescentPlan&)> printed_price = {};
  // How the budget is dealt to a client's participations: relative shares of Σ 1/z², at 0 … 1 of the way through them.
  std::function<double(double)> spending = {};
  std::optional<LayerRule> layers = {};    // layers have bounds and noise of their own
  std::optional<NoisyModel> printed = {};  // what variant = "paper" does instead, where that is another method
  bool weigh_by_noise = false;             // clients count by the inverse variance of their noise, not by their records
  bool full_batch = false;                 // a step sees all records of a client, whatever federation.batch says
  privacy::ViewOptions views = {};         // of every record, whose gradients are averaged before they are bounded
  bool normalise = false;                  // gradients are scaled to the bound, not only down to it
  // Plain descent by this step, whatever [federation] says of optimisers. The plan is that of an average client.
  std::function<double(const PublicContext&, const privacy::DescentPlan&)> step_size = {};
  std::function<std::unique_ptr<ServerMethod>(NamedTensors start)> server = {};  // instead of one that averages
  std::string start = {};  // what clients train from: the broadcast's tensors of these names, this put before them
};

// Key growth: 1/z² ∝ x^growth; nothing where that is 0.
std::function<double(double)> read_growth(settings::Section& section, double fallback);

// Keys batches and weights, which all members have.
void read_common_options(settings::Section& section, NoisyTraining& options);
// These and clip.
NoisyTraining read_clip_options(settings::Section& section);

using NoisyTrainingReader = NoisyTraining (*)(settings::Section&);

// What variant = "paper" means.
enum class PaperVariant {
  kNone,         // there is none: no formula is printed
  kSameAsSound,  // the paper's method is sound as it is
  kPrinted       // PAC-DP's accounting: sensitivity C/B whatever the adjacency, one release per round
};

// A catalogue entry of the family.
MethodEntry noisy_training(std::string name, std::string what, std::string citation, NoisyTrainingReader read,
                           PaperVariant paper);

// The same for a method whose options hold those of the family among others: `training` finds them.
using NoisyTrainingFinder = const NoisyTraining& (*)(const RunSettings&);
MethodEntry noisy_training_within(std::string name, std::string what, std::string citation,
                                  std::function<std::any(settings::Section&)> read, NoisyTrainingFinder training,
                                  PaperVariant paper);

}  // namespace sotto::methods

// A client's choice of layers before a round, from the broadcast and from its own earlier releases.
#pragma once

#include "methods/dpsgd/layer_shares.h"
#include "methods/method.h"
#include "methods/parts/local_trainer.h"

#include <memory>
#include <vector>

namespace sotto::methods {

class LayerChooser {
 public:
  // `trainer` holds the model; its shared values are the broadcast's whenever choose() is called.
  LayerChooser(const PublicContext& context, LayerRule rule, LocalTrainer& trainer);

  // Sets plan.layers from plan.clip and the plan's noise. False: no layer is chosen.
  bool choose(const Broadcast& broadcast, const privacy::PrivateState& state, privacy::DescentPlan& plan);

  // What to remember of a release until the next round: P_j of every released layer, of others what was known before.
  NamedTensors estimates(const NamedTensors& released) const;

 private:
  void probe(int64_t round);

  const PublicContext context_;
  LayerRule rule_;
  LocalTrainer& trainer_;
  std::vector<models::LayerParameters> layers_;
  std::vector<LayerFacts> facts_;
  const NamedTensors* global_ = nullptr;  // of the broadcast that was chosen for last
  int64_t probed_round_ = -1;
};

}  // namespace sotto::methods

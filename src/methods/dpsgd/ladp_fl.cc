#include "methods/dpsgd/ladp_fl.h"

#include "methods/dpsgd/noisy_model.h"
#include "methods/dpsgd/noisy_training.h"

namespace sotto::methods {
namespace {

NoisyTraining read_sound(settings::Section& section) {
  NoisyTraining o = read_clip_options(section);
  o.layers = read_layer_rule(section);
  o.spending = read_growth(section, 0.0);
  return o;
}

NoisyModel read_printed(settings::Section& section) {
  const LayerRule rule = read_layer_rule(section);
  NoisyModel o = read_noisy_model(section);
  o.least_norm = rule.least_norm;
  o.estimate = rule.estimate;
  o.kl_least = rule.kl_least;
  o.kl_bound = rule.kl_bound;
  o.constant = ladp_constant;
  return o;
}

}  // namespace

MethodEntry ladp_fl() {
  return with_noisy_model(noisy_training("ladp-fl", "DP-SGD at the clients; layers have bounds and noise of their own",
                                         "Li et al., LaDP-FL", read_sound, PaperVariant::kNone),
                          read_printed);
}

}  // namespace sotto::methods

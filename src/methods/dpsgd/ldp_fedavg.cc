#include "methods/dpsgd/ldp_fedavg.h"

#include "methods/dpsgd/noisy_training.h"
#include "methods/parts/quantile_options.h"

namespace sotto::methods {
namespace {

NoisyTraining read_ldp_fedavg(settings::Section& section) {
  NoisyTraining o = read_clip_options(section);
  const privacy::QuantileOptions quantile = read_quantile_options(section);
  if (section.one_of("clipping", "fixed", {"fixed", "adaptive"}) == "adaptive") o.quantile = quantile;
  return o;
}

NoisyTraining read_median(settings::Section& section, privacy::QuantileOptions::Tracking tracking) {
  NoisyTraining o = read_clip_options(section);
  o.quantile = read_quantile_options(section);
  o.quantile->tracking = tracking;
  return o;
}

}  // namespace

MethodEntry ldp_fedavg() {
  return noisy_training("ldp-fedavg",
                        "averaging of models that clients trained with DP-SGD: record-level privacy against the server",
                        "Abadi et al., CCS 2016", read_ldp_fedavg, PaperVariant::kSameAsSound);
}

MethodEntry fixed_threshold() {
  return noisy_training("fixed", "PAC-DP's fixed-threshold baseline: DP-SGD at the clients, one bound for everyone",
                        "Zhou et al., PAC-DP", read_clip_options, PaperVariant::kPrinted);
}

MethodEntry cgm_median_style() {
  return noisy_training(
      "cgm-median-style", "DP-SGD at the clients; the bound follows a private median of gradients' norms, step by step",
      "after Andrew et al., NeurIPS 2021",
      [](settings::Section& section) { return read_median(section, privacy::QuantileOptions::Tracking::kSteps); },
      PaperVariant::kNone);
}

MethodEntry aqc_style() {
  return noisy_training(
      "aqc-style", "DP-SGD at the clients; a round's bound is the private median of the last cohort's gradients' norms",
      "after Geyer et al., 2017",
      [](settings::Section& section) { return read_median(section, privacy::QuantileOptions::Tracking::kHistogram); },
      PaperVariant::kNone);
}

}  // namespace sotto::methods

#include "methods/dpsgd/ldp_fedavg.h"

#include "methods/dpsgd/noisy_training.h"
#include "methods/parts/iterates.h"
#include "methods/parts/quantile_options.h"

namespace sotto::methods {
namespace {

NoisyTraining read_ldp_fedavg(settings::Section& section) {
  NoisyTraining o = read_clip_options(section);
  o.quantile = read_adaptive_clipping(section);
  o.views.count = section.integer("views", o.views.count, settings::between(1, 64));
  o.views.shift = section.integer("view_shift", o.views.shift, settings::between(0, 16));
  o.views.flip = section.boolean("view_flip", o.views.flip);
  section.only_if(o.views.several(), "view_shift", o.views.shift == privacy::ViewOptions().shift, "with one view");
  section.only_if(o.views.several(), "view_flip", !o.views.flip, "with one view");
  const IterateOptions iterates{.averaging = section.number("averaging", 0.0, settings::kNonNegative)};
  if (iterates.averaging == 0) return o;
  if (o.quantile) section.fail("averaging", "would average the learnt bound as well; set clipping to \"fixed\"");
  o.server = [iterates](NamedTensors start) { return make_iterate_server(std::move(start), iterates); };
  o.start = kIteratePrefix;
  return o;
}

bool as_printed(const settings::Section& section) {
  return section.resolved().value("variant", "sound") == "paper";
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

MethodEntry cgm_median() {
  return noisy_training(
      "cgm-median", "DP-SGD at the clients; the bound follows a private median of gradients' norms, step by step",
      "Andrew et al., NeurIPS 2021",
      [](settings::Section& section) { return read_median(section, privacy::QuantileOptions::Tracking::kSteps); },
      PaperVariant::kPrinted);
}

MethodEntry aqc() {
  return noisy_training(
      "aqc", "DP-SGD at the clients; a round's bound is the private median of the last cohort's gradients' norms",
      "Geyer et al., 2017",
      [](settings::Section& section) {
        NoisyTraining o = read_median(section, privacy::QuantileOptions::Tracking::kHistogram);
        o.quantile->in_the_clear = as_printed(section);
        return o;
      },
      PaperVariant::kPrinted);
}

}  // namespace sotto::methods

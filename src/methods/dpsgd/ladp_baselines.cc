#include "methods/dpsgd/ladp_baselines.h"

#include "methods/dpsgd/noisy_model.h"
#include "methods/dpsgd/noisy_training.h"
#include "methods/parts/quantile_options.h"

#include <cmath>

namespace sotto::methods {
namespace {

NoisyTraining read_quantile(settings::Section& section) {
  NoisyTraining o = read_clip_options(section);
  o.quantile = read_quantile_options(section);
  return o;
}

void read_decay(settings::Section& section, NoisyTraining& o) {
  const double decay = section.number("decay", 0.5, {.low = 0, .high = 1, .low_excluded = true});
  o.spending = [=](double x) { return std::pow(decay, -2 * x); };
}

NoisyModel read_full_dp_as_printed(settings::Section& section) {
  NoisyModel o = read_noisy_model(section);
  o.constant = classical_constant;
  return o;
}

}  // namespace

MethodEntry full_dp() {
  return with_noisy_model(
      noisy_training("full-dp", "DP-SGD at the clients; one bound and one noise for all layers",
                     "Wei et al., IEEE TIFS 2020, as LaDP-FL compares with it", read_clip_options, PaperVariant::kNone),
      read_full_dp_as_printed);
}

MethodEntry time_varying_dp_style() {
  return noisy_training(
      "time-varying-dp-style", "DP-SGD at the clients; noise decays over a client's participations",
      "after Yuan et al., IEEE TIFS 2023",
      [](settings::Section& section) {
        NoisyTraining o = read_clip_options(section);
        read_decay(section, o);
        return o;
      },
      PaperVariant::kNone);
}

MethodEntry dpa_ldp_style() {
  return noisy_training(
      "dpa-ldp-style", "DP-SGD at the clients; a client spends more of its budget the later it takes part",
      "after Zhang et al., ICASSP 2024",
      [](settings::Section& section) {
        NoisyTraining o = read_clip_options(section);
        o.spending = read_growth(section, 1.0);
        return o;
      },
      PaperVariant::kNone);
}

MethodEntry sensitive_dp_style() {
  return noisy_training("sensitive-dp-style",
                        "DP-SGD at the clients; the bound follows a private quantile of gradients' norms",
                        "after Xue et al., IEEE TIFS 2023", read_quantile, PaperVariant::kNone);
}

MethodEntry adap_ldp_style() {
  return noisy_training(
      "adap-ldp-style", "DP-SGD at the clients; the bound follows a private quantile, and noise decays",
      "after Yue et al., IEEE TMC 2025",
      [](settings::Section& section) {
        NoisyTraining o = read_quantile(section);
        read_decay(section, o);
        return o;
      },
      PaperVariant::kNone);
}

}  // namespace sotto::methods

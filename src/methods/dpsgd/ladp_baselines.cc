#include "methods/dpsgd/ladp_baselines.h"

#include "methods/dpsgd/noisy_model.h"
#include "methods/dpsgd/noisy_training.h"
#include "methods/parts/quantile_options.h"

#include <cmath>

namespace sotto::methods {
namespace {

// With these, budgets added up by LaDP-FL's equations 17 to 19 exceed Full DP's by what it reports: 57.3 and 26.04 %.
constexpr double kTimeVaryingDecay = 0.43;
constexpr double kAllocatedDecay = 0.64;

NoisyTraining read_quantile(settings::Section& section, privacy::QuantileOptions::Tracking tracking) {
  NoisyTraining o = read_clip_options(section);
  o.quantile = read_quantile_options(section);
  o.quantile->tracking = tracking;
  return o;
}

double read_decay(settings::Section& section, double fallback) {
  return section.number("decay", fallback, {.low = 0, .high = 1, .low_excluded = true});
}

// z ∝ decay^x.
std::function<double(double)> decaying(double decay) {
  if (decay == 1) return {};
  return [=](double x) { return std::pow(decay, -2 * x); };
}

NoisyModel read_full_dp_as_printed(settings::Section& section) {
  NoisyModel o = read_noisy_model(section);
  o.constant = classical_constant;
  return o;
}

template <double (*decay_of)(settings::Section&)>
NoisyModel read_decaying_as_printed(settings::Section& section) {
  NoisyModel o = read_full_dp_as_printed(section);
  o.decay = decay_of(section);
  return o;
}

double time_varying_decay(settings::Section& section) {
  return read_decay(section, kTimeVaryingDecay);
}

double allocated_decay(settings::Section& section) {
  return read_decay(section, kAllocatedDecay);
}

}  // namespace

MethodEntry full_dp() {
  return with_noisy_model(
      noisy_training("full-dp", "DP-SGD at the clients; one bound and one noise for all layers",
                     "Wei et al., IEEE TIFS 2020, as LaDP-FL compares with it", read_clip_options, PaperVariant::kNone),
      read_full_dp_as_printed);
}

MethodEntry time_varying_dp() {
  return with_noisy_model(
      noisy_training(
          "time-varying-dp", "DP-SGD at the clients; noise falls as a geometric series over a client's participations",
          "Yuan et al., IEEE TIFS 2023, as LaDP-FL compares with it",
          [](settings::Section& section) {
            NoisyTraining o = read_clip_options(section);
            o.spending = decaying(time_varying_decay(section));
            return o;
          },
          PaperVariant::kNone),
      read_decaying_as_printed<time_varying_decay>);
}

MethodEntry dpa_ldp() {
  return with_noisy_model(
      noisy_training(
          "dpa-ldp", "DP-SGD at the clients; noise decays exponentially, more slowly than time-varying-dp's",
          "Zhang et al., ICASSP 2024, as LaDP-FL compares with it",
          [](settings::Section& section) {
            NoisyTraining o = read_clip_options(section);
            o.spending = decaying(allocated_decay(section));
            if (const auto growing = read_growth(section, 0.0)) o.spending = growing;
            return o;
          },
          PaperVariant::kNone),
      read_decaying_as_printed<allocated_decay>);
}

MethodEntry sensitive_dp_style() {
  return noisy_training(
      "sensitive-dp-style", "DP-SGD at the clients; the bound follows a private quantile of gradients' norms",
      "after Xue et al., IEEE TIFS 2023",
      [](settings::Section& section) { return read_quantile(section, privacy::QuantileOptions::Tracking::kSteps); },
      PaperVariant::kNone);
}

MethodEntry adap_ldp() {
  return with_noisy_model(
      noisy_training(
          "adap-ldp", "DP-SGD at the clients; a round's bound is a private quantile of the last cohort's norms",
          "Yue et al., IEEE TMC 2025, as LaDP-FL compares with it",
          [](settings::Section& section) {
            NoisyTraining o = read_quantile(section, privacy::QuantileOptions::Tracking::kHistogram);
            o.spending = decaying(read_decay(section, 1.0));
            return o;
          },
          PaperVariant::kNone),
      read_full_dp_as_printed);
}

}  // namespace sotto::methods

#include "methods/dpsgd/pac_dp.h"

#include "methods/dpsgd/clip_curve.h"
#include "methods/dpsgd/noisy_training.h"

#include <cmath>
#include <numbers>

namespace sotto::methods {
namespace {

// A table as it stands; a text names a built-in curve or a file. Resolved, it is a table: a run does not depend on a
// file that may change.
ClipCurve read_curve(settings::Section& section) {
  const nlohmann::json value = section.any("curve");
  if (value.is_null()) {
    section.fail("curve", "has no default; write the curve file that `sotto fit` made, or \"paper-mnist\"");
  }
  const ClipCurve curve = value.is_string() ? find_clip_curve(section.file_beside(value.get<std::string>()))
                                            : clip_curve_from(value, "method.curve");
  section.resolve("curve", to_json(curve));
  return curve;
}

NoisyTraining read_options(settings::Section& section) {
  NoisyTraining o;
  const ClipCurve curve = read_curve(section);
  const double plateau = section.number("plateau", 0.6, settings::kFraction);
  const double least = section.number("least_scale", 0.1, {.low = 0, .high = 1, .low_excluded = true});
  o.bound = [=](const BoundQuestion& question) {
    const double position = curve.axis == CurveAxis::kSignalToNoise ? question.signal_to_noise : question.epsilon;
    return curve(position) * clip_schedule(question.round, question.rounds, plateau, least);
  };
  read_common_options(section, o);
  return o;
}

}  // namespace

double clip_schedule(int64_t round, int64_t rounds, double plateau, double least) {
  const auto total = static_cast<double>(rounds);
  const double start = std::floor(plateau * total);
  const auto passed = static_cast<double>(round - 1);
  if (passed < start) return 1.0;
  return least + (1 - least) * (1 + std::cos(std::numbers::pi * (passed - start) / (total - start))) / 2;
}

MethodEntry pac_dp() {
  MethodEntry entry =
      noisy_training("pac-dp", "DP-SGD at the clients; each one's bound follows from its budget by a fitted curve",
                     "Zhou et al., PAC-DP", read_options, PaperVariant::kPrinted);
  entry.example_options = {"curve=\"paper-mnist\""};
  return entry;
}

}  // namespace sotto::methods

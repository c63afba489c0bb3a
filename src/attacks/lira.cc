#include "attacks/lira.h"

#include "attacks/parts/membership.h"

#include <ATen/ATen.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

namespace sotto::attacks {
namespace {

constexpr double kLeastVariance = 1e-4;

nlohmann::json run(const Target& target, const AttackOptions& options) {
  return ask_shadows(target, options,
                     [](const Shadows& shadows, const at::Tensor& logits, const Membership& membership) {
                       return describe(lira_scores(shadows, logits, membership.records.y, membership.members));
                     });
}

}  // namespace

at::Tensor scaled_confidence(const at::Tensor& logits, const at::Tensor& labels) {
  const at::Tensor values = logits.to(at::kDouble);
  std::vector<int64_t> shape = values.sizes().vec();
  shape.back() = 1;
  const at::Tensor index = labels.reshape({-1, 1}).expand(shape);
  const at::Tensor own = values.gather(-1, index);
  const at::Tensor rest = values.scatter(-1, index, -std::numeric_limits<double>::infinity()).logsumexp(-1, true);
  return (own - rest).squeeze(-1).clamp(-60, 60);
}

Scores lira_scores(const Shadows& shadows, const at::Tensor& target, const at::Tensor& labels, int64_t members) {
  const at::Tensor confidence = scaled_confidence(shadows.logits, labels);
  const at::Tensor in = shadows.held.to(at::kDouble), out = 1 - in;
  // One variance for all records: few shadows would not give each its own.
  const auto fit = [&](const at::Tensor& weight) {
    const at::Tensor mean = (confidence * weight).sum(0) / weight.sum(0).clamp_min(1);
    const double variance = ((confidence - mean).square() * weight).sum().item<double>() / weight.sum().item<double>();
    return std::pair{mean, std::max(variance, kLeastVariance)};
  };
  const auto [mean_in, variance_in] = fit(in);
  const auto [mean_out, variance_out] = fit(out);
  const at::Tensor seen = scaled_confidence(target, labels);
  const at::Tensor score =
      (seen - mean_out).square() / (2 * variance_out) - (seen - mean_in).square() / (2 * variance_in);
  return by_membership(score, members);
}

AttackEntry lira() {
  return {.name = "lira",
          .what = "whether a record was trained on, by likelihood ratios of shadow models",
          .citation = "Carlini et al., IEEE S&P 2022",
          .needs = "the last model",
          .shared = true,
          .run = run};
}

}  // namespace sotto::attacks

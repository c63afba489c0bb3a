#include "attacks/parts/measures.h"

#include "audit/bounds.h"
#include "base/error.h"

#include <ATen/ATen.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace sotto::attacks {
namespace {

constexpr size_t kPoints = 400;
constexpr double kTail = 0.025;

// How many members and others score at least as much as each distinct score, from the largest down.
struct Step {
  int64_t members = 0, others = 0;
};

std::vector<Step> steps(const Scores& scores) {
  SOTTO_INVARIANT(!scores.members.empty() && !scores.others.empty());
  std::vector<std::pair<double, bool>> all;
  for (const double score : scores.members) all.emplace_back(score, true);
  for (const double score : scores.others) all.emplace_back(score, false);
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<Step> steps = {{}};
  Step now;
  for (size_t i = 0; i < all.size(); ++i) {
    ++(all[i].second ? now.members : now.others);
    if (i + 1 == all.size() || all[i + 1].first != all[i].first) steps.push_back(now);
  }
  return steps;
}

at::Tensor covariance(const at::Tensor& centred) {
  return at::mm(centred.t(), centred) / static_cast<double>(centred.size(0) - 1);
}

at::Tensor square_root(const at::Tensor& symmetric) {
  const auto [values, vectors] = at::linalg_eigh(symmetric);
  return at::mm(vectors * values.clamp_min(0).sqrt(), vectors.t());
}

}  // namespace

Scores by_membership(const at::Tensor& scores, int64_t members) {
  Scores result;
  for (int64_t i = 0; i < scores.size(0); ++i) {
    (i < members ? result.members : result.others).push_back(scores[i].item<double>());
  }
  return result;
}

std::vector<RocPoint> roc(const Scores& scores) {
  std::vector<RocPoint> points;
  for (const Step& step : steps(scores)) {
    points.push_back({static_cast<double>(step.others) / static_cast<double>(scores.others.size()),
                      static_cast<double>(step.members) / static_cast<double>(scores.members.size())});
  }
  return points;
}

double auc(const Scores& scores) {
  double area = 0;
  const auto points = roc(scores);
  for (size_t i = 1; i < points.size(); ++i) {
    area += (points[i].false_positive_rate - points[i - 1].false_positive_rate) *
            (points[i].true_positive_rate + points[i - 1].true_positive_rate) / 2;
  }
  return area;
}

double true_positives_at(const Scores& scores, double limit) {
  double best = 0;
  for (const RocPoint& point : roc(scores)) {
    if (point.false_positive_rate <= limit) best = std::max(best, point.true_positive_rate);
  }
  return best;
}

double advantage(const Scores& scores) {
  double best = 0;
  for (const RocPoint& point : roc(scores)) {
    best = std::max(best, point.true_positive_rate - point.false_positive_rate);
  }
  return best;
}

double best_f1(const Scores& scores) {
  double best = 0;
  const auto members = static_cast<double>(scores.members.size());
  for (const Step& step : steps(scores)) {
    best = std::max(
        best, 2.0 * static_cast<double>(step.members) / (static_cast<double>(step.members + step.others) + members));
  }
  return best;
}

nlohmann::json describe(const Scores& scores) {
  nlohmann::json curve = {{"false_positive_rate", nlohmann::json::array()},
                          {"true_positive_rate", nlohmann::json::array()},
                          {"low", nlohmann::json::array()},
                          {"high", nlohmann::json::array()}};
  const auto all = steps(scores);
  const auto members = static_cast<int64_t>(scores.members.size());
  const size_t stride = std::max<size_t>(1, (all.size() + kPoints - 1) / kPoints);
  for (size_t i = 0; i < all.size(); i = i + 1 < all.size() ? std::min(i + stride, all.size() - 1) : all.size()) {
    curve["false_positive_rate"].push_back(static_cast<double>(all[i].others) /
                                           static_cast<double>(scores.others.size()));
    curve["true_positive_rate"].push_back(static_cast<double>(all[i].members) / static_cast<double>(members));
    curve["low"].push_back(audit::lower_limit(all[i].members, members, kTail));
    curve["high"].push_back(audit::upper_limit(all[i].members, members, kTail));
  }
  return {{"auc", auc(scores)},
          {"advantage", advantage(scores)},
          {"tpr_at_1_percent", true_positives_at(scores, 0.01)},
          {"tpr_at_0.1_percent", true_positives_at(scores, 0.001)},
          {"best_f1", best_f1(scores)},
          {"members", scores.members.size()},
          {"others", scores.others.size()},
          {"roc", std::move(curve)}};
}

double frechet_distance(const at::Tensor& a, const at::Tensor& b) {
  SOTTO_INVARIANT(a.dim() == 2 && b.dim() == 2 && a.size(1) == b.size(1) && a.size(0) >= 2 && b.size(0) >= 2);
  const at::Tensor x = a.to(at::kDouble), y = b.to(at::kDouble);
  const at::Tensor first = covariance(x - x.mean(0)), second = covariance(y - y.mean(0));
  const at::Tensor root = square_root(first);
  const at::Tensor product = at::mm(at::mm(root, second), root);
  const double cross = at::linalg_eigvalsh((product + product.t()) / 2).clamp_min(0).sqrt().sum().item<double>();
  const double means = (x.mean(0) - y.mean(0)).square().sum().item<double>();
  return std::max(0.0, means + first.trace().item<double>() + second.trace().item<double>() - 2 * cross);
}

double psnr(const at::Tensor& original, const at::Tensor& other) {
  const double error = (original - other).to(at::kDouble).square().mean().item<double>();
  return error == 0 ? std::numeric_limits<double>::infinity() : 10 * std::log10(4.0 / error);
}

double ssim(const at::Tensor& original, const at::Tensor& other) {
  constexpr double c1 = 0.02 * 0.02, c2 = 0.06 * 0.06;  // (0.01·2)², (0.03·2)²: values span 2
  const at::Tensor a = original.to(at::kDouble).unsqueeze(0), b = other.to(at::kDouble).unsqueeze(0);
  const int64_t window = std::min<int64_t>({7, a.size(2), a.size(3)});
  const auto local = [&](const at::Tensor& x) { return at::avg_pool2d(x, {window, window}, {1, 1}); };
  const at::Tensor mean_a = local(a), mean_b = local(b);
  const at::Tensor variance_a = local(a * a) - mean_a * mean_a, variance_b = local(b * b) - mean_b * mean_b;
  const at::Tensor covariance_ab = local(a * b) - mean_a * mean_b;
  return ((2 * mean_a * mean_b + c1) * (2 * covariance_ab + c2) /
          ((mean_a * mean_a + mean_b * mean_b + c1) * (variance_a + variance_b + c2)))
      .mean()
      .item<double>();
}

at::Tensor to_bytes(const at::Tensor& pictures) {
  return pictures.detach().add(1).mul(127.5).round().clamp(0, 255).to(at::kByte);
}

}  // namespace sotto::attacks

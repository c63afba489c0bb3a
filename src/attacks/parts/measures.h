// How well an attack did.
#pragma once

#include <ATen/core/Tensor.h>

#include <nlohmann/json_fwd.hpp>

#include <vector>

namespace sotto::attacks {

// Scores of records that were trained on and of records that were not; larger means "member".
struct Scores {
  std::vector<double> members;
  std::vector<double> others;
};

// One score per record, members first.
Scores by_membership(const at::Tensor& scores, int64_t members);

struct RocPoint {
  double false_positive_rate = 0;
  double true_positive_rate = 0;
};

// From (0, 0) to (1, 1), one point per distinct score: ties move both rates at once.
std::vector<RocPoint> roc(const Scores& scores);

// The probability that a member scores above another record; ties count half.
double auc(const Scores& scores);
// The largest true positive rate at a false positive rate of at most `limit`.
double true_positives_at(const Scores& scores, double limit);
// The largest true minus false positive rate.
double advantage(const Scores& scores);
// The largest F1 of any threshold.
double best_f1(const Scores& scores);

// All of them, and the curve at no more than 400 points with 95 % Clopper–Pearson limits of the true positive rate: the
// keys of attacks/NAME.json.
nlohmann::json describe(const Scores& scores);

// ‖m₁ - m₂‖² + tr(S₁ + S₂ - 2(S₁S₂)^½) of the Gaussians that fit two sets of features [n, d], n ≥ 2 (Dowson and Landau
// 1982).
double frechet_distance(const at::Tensor& a, const at::Tensor& b);

// Pictures as floats in [-1, 1]. Peak signal-to-noise ratio in dB; ∞ where they are equal.
double psnr(const at::Tensor& original, const at::Tensor& other);
// Mean structural similarity of [C, H, W] over 7×7 windows, or over the whole picture if it is smaller (Wang et al.
// 2004).
double ssim(const at::Tensor& original, const at::Tensor& other);

// uint8 of floats in [-1, 1].
at::Tensor to_bytes(const at::Tensor& pictures);

}  // namespace sotto::attacks

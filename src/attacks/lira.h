// LiRA: was this record trained on? For each record, Gaussians of the logit-scaled confidence of shadows that held it
// and of those that did not; the score is the ratio of the target's likelihoods.
//
// Carlini et al., "Membership Inference Attacks From First Principles", IEEE S&P 2022.
#pragma once

#include "attacks/attack.h"
#include "attacks/parts/measures.h"
#include "attacks/parts/shadows.h"

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace sotto::attacks {

AttackEntry lira();

// log p/(1-p) of the true class, [..., records] of logits [..., records, classes].
at::Tensor scaled_confidence(const at::Tensor& logits, const at::Tensor& labels);

// `target`: logits [records, classes] of the model under attack; members first.
Scores lira_scores(const Shadows& shadows, const at::Tensor& target, const at::Tensor& labels, int64_t members);

}  // namespace sotto::attacks

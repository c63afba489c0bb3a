// Was this record trained on? A small network per class learns from the softmax outputs of shadow models what members
// look like.
//
// Shokri et al., "Membership Inference Attacks Against Machine Learning Models", IEEE S&P 2017.
#pragma once

#include "attacks/attack.h"
#include "attacks/parts/measures.h"
#include "attacks/parts/shadows.h"

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace sotto::attacks {

AttackEntry shadow();

struct ShadowAttack {
  Scores scores;
  double success_rate = 0;  // share of right guesses at the networks' own threshold
};

// `target`: logits [records, classes] of the model under attack; members first.
ShadowAttack shadow_scores(const Shadows& shadows, const at::Tensor& target, const at::Tensor& labels, int64_t members,
                           uint64_t seed);

}  // namespace sotto::attacks

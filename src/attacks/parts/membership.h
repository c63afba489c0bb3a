// Was this record trained on? Two attacks on what a model says of records, both by way of shadow models.
//
// Shadows are federations of one client that train as the target does, same method and noise, on random halves of
// records of known membership. They are trained in parallel and kept beside the run.
//
//   shadow   a small network per class learns from the shadows' softmax outputs what members look like (Shokri et al.,
//            IEEE S&P 2017)
//   lira     for each record, Gaussians of the logit-scaled confidence of shadows that held it and of those that did
//            not; the score is the ratio of the target's likelihoods (Carlini et al., IEEE S&P 2022)
#pragma once

#include "attacks/parts/measures.h"
#include "attacks/target.h"

#include <cstdint>
#include <filesystem>
#include <optional>

namespace sotto::attacks {

struct ShadowOptions {
  int64_t shadows = 50;
  uint64_t seed = 1;
  int threads = 1;
  std::filesystem::path cache = {};  // a file; empty: nothing is kept
};

struct Shadows {
  at::Tensor logits;  // [shadows, records, classes]
  at::Tensor held;    // bool [shadows, records]: which records each was trained on
};

// `setup` says how to train. A cache of other settings or records is not used.
Shadows train_shadows(const federation::Setup& setup, const data::Records& records, const ShadowOptions& options);

// log p/(1-p) of the true class, [..., records] of logits [..., records, classes].
at::Tensor scaled_confidence(const at::Tensor& logits, const at::Tensor& labels);

// `target`: logits [records, classes] of the model under attack; members first.
Scores lira_scores(const Shadows& shadows, const at::Tensor& target, const at::Tensor& labels, int64_t members);

// Also the share of right guesses at the attack network's own threshold.
struct ShadowAttack {
  Scores scores;
  double success_rate = 0;
};
ShadowAttack shadow_scores(const Shadows& shadows, const at::Tensor& target, const at::Tensor& labels, int64_t members,
                           uint64_t seed);

}  // namespace sotto::attacks

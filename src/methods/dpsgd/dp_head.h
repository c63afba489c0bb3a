// dp-head: a linear head on fixed features, by few noisy steps that see all records.
//
// Every record's gradient is scaled to norm 1 (automatic clipping: Z. Bu et al., NeurIPS 2023), so that there is no
// bound to choose. Features of norm 1 (model "linear") make the step a matter of arithmetic, too. In S steps of size η
// over m clients with n records each, the noise moves a logit by a deviation of
//
//   η √S z Δ/(n √m),
//
// z being the multiplier of a step. Logits matter on a scale of 1, whatever the data. So η is such that this is
// `logit_noise`, and at most `largest_step`. All of it follows from settings and declared facts: nothing is tuned on
// records.
//
// Clients send models one or more steps from the broadcast; the server turns their mean into a step with momentum, and
// publishes the average of its iterates beside the last one. Both are post-processing.
#pragma once

#include "methods/dpsgd/noisy_training.h"
#include "methods/method.h"

namespace sotto::methods {

MethodEntry dp_head();

// All of its keys, for methods that train a model of their own beside it.
NoisyTraining read_head_options(settings::Section& section);

// What its clients do, under a server that averages; `kept` is the part of its distance from the mean that a client's
// model keeps from round to round, and that noise is kept in: 0 where all clients go on from the mean.
NoisyTraining read_head_steps(settings::Section& section, double kept);

}  // namespace sotto::methods

// What does each class look like? A generator that a curious client trains against the global model: the last client
// unless another is named, for under private-label partitions that one lacks a class.
//
// Hitaj et al., "Deep Models Under the GAN: Information Leakage from Collaborative Deep Learning", CCS 2017.
#pragma once

#include "attacks/attack.h"

namespace sotto::attacks {

AttackEntry gan();

}  // namespace sotto::attacks

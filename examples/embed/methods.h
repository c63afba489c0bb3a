// The methods of this program.
#pragma once

#include <sotto/method.h>

// FedAvg whose server has momentum: v ← βv + (average - model), model ← model + v.
//
// T.-M. H. Hsu, H. Qi, M. Brown, "Measuring the Effects of Non-Identical Data Distribution for Federated Visual
// Classification", 2019. Not private.
sotto::Method server_momentum();

// Clients train, and send what that changed, clipped as a whole and with noise for their budget; the server adds the mean.
sotto::Method noisy_updates();

// Which records a step sees. The accountant's claims hold for these samplers and no others.
//
// All take the public constants a privacy claim is about; batches are int64 positions into a client's records, each batch
// in random order: a record more or less then moves one other record at most (docs/proofs/noisy-descent.md).
//
// Proofs: docs/proofs/poisson-batches.md, disjoint-batches.md, random-allocation.md
#pragma once

#include "base/random.h"
#include "privacy/noise/noise_source.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace sotto::privacy {

// Every record independently with probability `rate`: amplification under add-remove. May be empty; the step still
// gets its noise. Amplification is only as good as the batch is secret, so it comes from where the noise comes from.
at::Tensor poisson_batch(int64_t records, double rate, NoiseSource& secret);
// The same with a rate for every record.
at::Tensor poisson_batch(const std::vector<double>& rates, NoiseSource& secret);

// One epoch of disjoint batches under `replace` adjacency, where the number of records is public: a random order, cut
// into slices of `batch`; the last may be shorter. Parallel composition: a record is in one batch.
std::vector<at::Tensor> sliced_epoch(int64_t records, int64_t batch, RandomStream& stream);

// One epoch of random allocation: every record draws one of `batches` independently, so that one record more or less
// leaves the others where they are. `batches` must be a declared constant, not computed from a private number of
// records. Batches may be empty. Amplified, so the draws come from where the noise comes from.
std::vector<at::Tensor> scattered_epoch(int64_t records, int64_t batches, NoiseSource& secret);

}  // namespace sotto::privacy

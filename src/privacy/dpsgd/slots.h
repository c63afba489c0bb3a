// Fixed slots: what is computed of a record depends on that record alone, to the last bit.
//
// Kernels may add up in an order that follows from the shape of what they are given. So records are taken in passes of
// a fixed number of slots, and slots without a record hold a blank: shapes are the same whoever else is there. That no
// slot is computed in another way than the next cannot be read off a library; it is checked with made-up records, each in
// all of them, and where it is not so records are taken in whole tiles of rows, or else one at a time.
//
// Proof: docs/proofs/noisy-descent.md
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace sotto::privacy {

// Of one pass: so few that rounding of their sum in floats is covered by the margin of a release.
inline constexpr int64_t kMostSlots = 64;

// How many slots suit batches of a public size, at most `most`. Random batches want short passes: the last is half empty
// on average, and a quarter of the batch keeps that at an eighth.
int64_t suited_slots(int64_t usual_batch, bool batches_vary, int64_t most = kMostSlots);

// The number made up to whole tiles of rows, which matrix products compute alike.
int64_t whole_tiles(int64_t slots);

// The rows [n, …], n ≤ slots, and zeros behind them, where memory is aligned as for any new tensor: the rows themselves
// if they are so and fill all slots, or else `buffer`, which is kept for the next time.
at::Tensor with_blanks(const at::Tensor& rows, int64_t slots, at::Tensor& buffer);

// A made-up row like those of `rows` in all of so many slots: normal numbers, or zeros where rows are not floats. It is
// the `which`-th of its kind.
at::Tensor made_up_rows(const at::Tensor& rows, int64_t slots, int64_t which);

// How many of them should be tried if `numbers` have a part in what is compared: where few have, another order of adding
// up often comes to the same. Whole tiles are tried less, since libraries have no reason to part them.
int64_t enough_trials(int64_t numbers, int64_t slots);

// Whether all rows are finite and equal to the last bit.
bool rows_are_alike(const at::Tensor& rows);

// Something computed of each record on its own, pass by pass.
class FixedSlots {
 public:
  // Tensors [n, …], a row for a record, to tensors [n, …]. It must not mix rows, and what it makes of a row may depend
  // on shapes and on public values besides.
  using Compute = std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>& records)>;

  explicit FixedSlots(int64_t slots = kMostSlots);

  // The results of all records, joined; no records make one pass of blanks, of which nothing is left. Before the first
  // pass `compute` is called to see that it treats all slots alike: one object is for one computation, of records of
  // one shape.
  std::vector<at::Tensor> apply(const std::vector<at::Tensor>& records, const Compute& compute);
  // Of every pass: as many as were asked for, whole tiles, or 1.
  int64_t slots() const { return slots_; }

 private:
  void choose(const std::vector<at::Tensor>& records, const Compute& compute);

  int64_t slots_;
  bool chosen_ = false;
  std::vector<at::Tensor> blanks_;
};

}  // namespace sotto::privacy

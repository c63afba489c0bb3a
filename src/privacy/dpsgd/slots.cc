#include "privacy/dpsgd/slots.h"

#include "base/error.h"
#include "base/log.h"
#include "base/random.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstdint>

namespace sotto::privacy {
namespace {

constexpr int64_t kPassesOfRandomBatch = 4;
constexpr int64_t kTile = 16;
constexpr int64_t kComparedNumbers = 1 << 16;
constexpr int64_t kMostTrials = 256;
constexpr int64_t kTrialsOfTiles = 16;

// As a tensor that was just made: kernels may look at where rows begin.
bool lies_like_new(const at::Tensor& rows) {
  constexpr uintptr_t kAlignment = 64;
  return rows.is_contiguous() && reinterpret_cast<uintptr_t>(rows.data_ptr()) % kAlignment == 0;
}

// Each of some made-up records comes to the same in all slots.
bool are_alike(int64_t slots, const std::vector<at::Tensor>& records, const FixedSlots::Compute& compute) {
  int64_t trials = 1;
  for (int64_t which = 0; which < trials; ++which) {
    std::vector<at::Tensor> made_up;
    for (const at::Tensor& rows : records) made_up.push_back(made_up_rows(rows, slots, which));
    const std::vector<at::Tensor> results = compute(made_up);
    if (!std::all_of(results.begin(), results.end(), rows_are_alike)) return false;
    int64_t numbers = 0;
    for (const at::Tensor& result : results) numbers += result.numel() / slots;
    trials = enough_trials(numbers, slots);
  }
  return true;
}

}  // namespace

int64_t whole_tiles(int64_t slots) {
  return std::min(kMostSlots, (slots + kTile - 1) / kTile * kTile);
}

int64_t suited_slots(int64_t usual_batch, bool batches_vary, int64_t most) {
  const int64_t batch = std::max<int64_t>(usual_batch, 1);
  if (batches_vary) return std::min(most, whole_tiles(std::max(kTile, batch / kPassesOfRandomBatch)));
  const int64_t passes = (batch + most - 1) / most, even = (batch + passes - 1) / passes;
  return even < kTile ? even : std::min(most, whole_tiles(even));
}

at::Tensor with_blanks(const at::Tensor& rows, int64_t slots, at::Tensor& buffer) {
  const int64_t count = rows.size(0);
  if (count == slots && lies_like_new(rows)) return rows;
  std::vector<int64_t> shape = rows.sizes().vec();
  shape[0] = slots;
  if (!buffer.defined() || buffer.sizes() != shape) buffer = at::empty(shape, rows.options());
  buffer.narrow(0, 0, count).copy_(rows);
  buffer.narrow(0, count, slots - count).zero_();
  return buffer;
}

at::Tensor made_up_rows(const at::Tensor& rows, int64_t slots, int64_t which) {
  std::vector<int64_t> shape = rows.sizes().vec();
  shape[0] = 1;
  at::Tensor row = at::zeros(shape, rows.options());
  RandomStream stream(1, "slots", static_cast<uint64_t>(which));
  if (row.is_floating_point()) row.normal_(0, 1, stream.torch_generator());
  return row.repeat_interleave(slots, 0);
}

int64_t enough_trials(int64_t numbers, int64_t slots) {
  const int64_t most = slots % kTile == 0 ? kTrialsOfTiles : kMostTrials;
  return std::clamp<int64_t>(kComparedNumbers / std::max<int64_t>(numbers, 1), 1, most);
}

bool rows_are_alike(const at::Tensor& rows) {
  return at::isfinite(rows).all().item<bool>() && rows.eq(rows.narrow(0, 0, 1)).all().item<bool>();
}

FixedSlots::FixedSlots(int64_t slots) : slots_(slots) {
  SOTTO_INVARIANT(slots >= 1 && slots <= kMostSlots);
}

void FixedSlots::choose(const std::vector<at::Tensor>& records, const Compute& compute) {
  chosen_ = true;
  blanks_.resize(records.size());
  const int64_t asked = slots_;
  for (const int64_t slots : {asked, whole_tiles(asked)}) {
    slots_ = slots;
    if (slots == 1 || are_alike(slots, records, compute)) return;
  }
  slots_ = 1;
  warn(
      "the kernels of this machine treat rows of a batch differently; records are taken one at a time, which is "
      "slower");
}

std::vector<at::Tensor> FixedSlots::apply(const std::vector<at::Tensor>& records, const Compute& compute) {
  if (!chosen_) choose(records, compute);
  SOTTO_INVARIANT(records.size() == blanks_.size());
  const int64_t all = records.front().size(0);
  std::vector<std::vector<at::Tensor>> passes;
  for (int64_t first = 0; first < std::max<int64_t>(all, 1); first += slots_) {
    const int64_t count = std::min(slots_, all - first);
    std::vector<at::Tensor> filled;
    for (size_t i = 0; i < records.size(); ++i) {
      filled.push_back(with_blanks(records[i].narrow(0, first, count), slots_, blanks_[i]));
    }
    const std::vector<at::Tensor> results = compute(filled);
    passes.resize(results.size());
    // Results may be views of what they were computed of, and blanks are used again.
    for (size_t i = 0; i < results.size(); ++i) passes[i].push_back(results[i].narrow(0, 0, count).clone());
  }
  std::vector<at::Tensor> joined;
  for (const std::vector<at::Tensor>& parts : passes) joined.push_back(parts.size() == 1 ? parts[0] : at::cat(parts));
  return joined;
}

}  // namespace sotto::privacy

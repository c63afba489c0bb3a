// Counts the bytes of live tensors, and of what libtorch's operators allocate for themselves, while it lives. One at a
// time.
#pragma once

#include <c10/core/Allocator.h>

#include <atomic>
#include <cstdint>

namespace sotto::bench {

class TensorMemory : public c10::Allocator {
 public:
  TensorMemory();
  // Restores the allocator. Tensors made in between must be gone.
  ~TensorMemory() override;

  // The highest count from now on.
  void start_peak() { peak_ = live_.load(); }
  int64_t peak_bytes() const { return peak_; }

  c10::DataPtr allocate(size_t bytes) const override;
  c10::DeleterFnPtr raw_deleter() const override { return &TensorMemory::release; }

 private:
  struct Header;
  static void release(void* data);

  c10::Allocator* outer_;
  mutable std::atomic<int64_t> live_ = 0, peak_ = 0;
};

}  // namespace sotto::bench

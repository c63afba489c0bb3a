#include "bench/tensor_memory.h"

#include "base/error.h"

#include <algorithm>
#include <limits>
#include <new>

namespace sotto::bench {
namespace {
constexpr uint8_t kHighestPriority = std::numeric_limits<uint8_t>::max();
}

// Before every block; as large as the alignment that vectors want.
struct alignas(64) TensorMemory::Header {
  const TensorMemory* owner;
  int64_t bytes;
};

TensorMemory::TensorMemory() : outer_(c10::GetAllocator(c10::kCPU)) {
  c10::SetAllocator(c10::kCPU, this, kHighestPriority);
}

TensorMemory::~TensorMemory() {
  c10::SetAllocator(c10::kCPU, outer_, kHighestPriority);
  SOTTO_INVARIANT(live_ == 0);
}

c10::DataPtr TensorMemory::allocate(size_t bytes) const {
  if (bytes == 0) return {nullptr, nullptr, &TensorMemory::release, c10::kCPU};
  void* memory = ::operator new (sizeof(Header) + bytes, std::align_val_t{alignof(Header)});
  auto* header = new (memory) Header{this, static_cast<int64_t>(bytes)};
  peak_ = std::max(peak_.load(), live_ += header->bytes);
  void* data = header + 1;
  return {data, data, &TensorMemory::release, c10::kCPU};
}

void TensorMemory::release(void* data) {
  if (data == nullptr) return;
  Header* header = static_cast<Header*>(data) - 1;
  header->owner->live_ -= header->bytes;
  ::operator delete (header, std::align_val_t{alignof(Header)});
}

}  // namespace sotto::bench

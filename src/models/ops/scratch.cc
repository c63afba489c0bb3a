#include "models/ops/scratch.h"

#include <array>
#include <memory>
#include <new>

namespace sotto::models::ops {

namespace {

constexpr std::align_val_t kAlignment{64};

struct Release {
  void operator()(float* memory) const { ::operator delete(memory, kAlignment); }
};

struct Buffer {
  std::unique_ptr<float, Release> memory;
  int64_t size = 0;
};

thread_local std::array<Buffer, static_cast<size_t>(Scratch::kCount)> buffers;

}  // namespace

float* scratch(Scratch use, int64_t floats) {
  Buffer& buffer = buffers[static_cast<size_t>(use)];
  if (buffer.size < floats) {
    buffer.size = 0;
    buffer.memory.reset(static_cast<float*>(::operator new(static_cast<size_t>(floats) * sizeof(float), kAlignment)));
    buffer.size = floats;
  }
  return buffer.memory.get();
}

}  // namespace sotto::models::ops

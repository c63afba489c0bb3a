// found[i] = table[words[i] >> 48], the first step from random words to Gaussian integers.
//
// Internal linkage on purpose: it is compiled for several instruction sets.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sotto::privacy {
namespace {

// Four at a time into one register: loads are the bottleneck, and the compiler's own vectors are slower.
inline void look_up_boxes(const uint64_t* words, size_t count, const uint8_t* table, uint16_t* found) {
  size_t i = 0;
  for (; i + 4 <= count; i += 4) {
    const uint64_t packed = uint64_t{table[words[i] >> 48]} | uint64_t{table[words[i + 1] >> 48]} << 16 |
                            uint64_t{table[words[i + 2] >> 48]} << 32 | uint64_t{table[words[i + 3] >> 48]} << 48;
    __builtin_memcpy(found + i, &packed, sizeof packed);
  }
  for (; i < count; ++i) found[i] = table[words[i] >> 48];
}

}  // namespace
}  // namespace sotto::privacy

// Memory that stays.
#pragma once

namespace sotto {

// Tells the C allocator to keep freed blocks instead of returning them to the kernel: tensors of the same sizes are
// made again at every step, and fresh pages are slow. Call once, first thing in main. Does nothing where the allocator
// has no such setting.
void keep_freed_memory();

// Tells it to let all threads share two heaps instead of giving each its own, whose highest marks would add up: for
// programs whose many threads wait for others most of the time.
void share_heaps();

}  // namespace sotto

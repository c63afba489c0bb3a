// Work for several threads whose result does not depend on how many there are.
#pragma once

#include <cstdint>
#include <functional>

namespace sotto {

// Cores this process may use.
int available_threads();

// Runs work(item, worker) for items 0 … count-1 on `threads` threads, worker in [0, threads), each with one intra-op
// libtorch thread. finish(item) is called on the calling thread's behalf in item order, one at a time, as soon as all
// earlier items are done; at most 2·threads items are between the start of their work and the end of their finish, so
// that memory for results is bounded. The first exception stops the rest and is rethrown.
void parallel_in_order(int64_t count, int threads, const std::function<void(int64_t item, int worker)>& work,
                       const std::function<void(int64_t item)>& finish);

}  // namespace sotto

#include "base/interrupt.h"

#include <csignal>

namespace sotto {
namespace {

volatile std::sig_atomic_t requested = 0;

extern "C" void on_signal(int signal) {
  requested = 1;
  std::signal(signal, SIG_DFL);
}

}  // namespace

void catch_interrupts() {
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
}

bool interrupted() {
  return requested != 0;
}

}  // namespace sotto

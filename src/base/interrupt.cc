#include "base/interrupt.h"

#include <unistd.h>

#include <csignal>
#include <cstring>

namespace sotto {
namespace {

volatile std::sig_atomic_t requested = 0;

extern "C" void on_signal(int signal) {
  requested = 1;
  std::signal(signal, SIG_DFL);
}

const char* last_line = "";

// Only calls that are safe in a handler.
extern "C" void on_ending_signal(int) {
  const auto say = [](const char* text) { return ::write(STDERR_FILENO, text, std::strlen(text)); };
  const bool said = say(::isatty(STDERR_FILENO) == 1 ? "\nsotto: " : "sotto: ") >= 0 && say(last_line) >= 0;
  ::_exit(said && say("\n") >= 0 ? 1 : 2);
}

}  // namespace

void end_on_interrupt(const char* line) {
  last_line = line;
  std::signal(SIGINT, on_ending_signal);
  std::signal(SIGTERM, on_ending_signal);
}

void catch_interrupts() {
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
}

bool interrupted() {
  return requested != 0;
}

}  // namespace sotto

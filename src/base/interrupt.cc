#include "base/interrupt.h"

#include <unistd.h>

#include <csignal>
#include <cstring>

namespace sotto {
namespace {

constexpr int kRequests[] = {SIGINT, SIGTERM, SIGUSR1};
volatile std::sig_atomic_t requested = 0;
bool signals_are_ours = true;

extern "C" void on_signal(int signal) {
  requested = 1;
  std::signal(signal, SIG_DFL);
}

const char* last_line = "";

// Only calls that are safe in a handler.
bool say_last_line() {
  const auto say = [](const char* text) { return ::write(STDERR_FILENO, text, std::strlen(text)) >= 0; };
  return say(::isatty(STDERR_FILENO) == 1 ? "\nsotto: " : "sotto: ") && say(last_line) && say("\n");
}

extern "C" void on_announced_signal(int signal) {
  if (requested == 0) say_last_line();
  on_signal(signal);
}

extern "C" void on_ending_signal(int) {
  ::_exit(say_last_line() ? 1 : 2);
}

}  // namespace

void leave_signals_alone() {
  signals_are_ours = false;
}

void request_interrupt(bool wanted) {
  requested = wanted ? 1 : 0;
}

void end_on_interrupt(const char* line) {
  if (!signals_are_ours) return;
  last_line = line;
  std::signal(SIGINT, on_ending_signal);
  std::signal(SIGTERM, on_ending_signal);
}

void catch_interrupts() {
  if (!signals_are_ours) return;
  for (const int signal : kRequests) std::signal(signal, on_signal);
}

void announce_interrupts(const std::string& line) {
  if (!signals_are_ours) return;
  static std::string kept;  // the handler reads it as long as the process lives
  kept = line;
  last_line = kept.c_str();
  for (const int signal : kRequests) std::signal(signal, on_announced_signal);
}

bool interrupted() {
  return requested != 0;
}

}  // namespace sotto

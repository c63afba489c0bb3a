#include "base/interrupt.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <string>

namespace sotto {
namespace {

constexpr int kRequests[] = {SIGINT, SIGTERM, SIGUSR1};
volatile std::sig_atomic_t requested = 0;
bool signals_are_ours = true;

extern "C" void on_signal(int signal) {
  requested = 1;
  std::signal(signal, SIG_DFL);
}

const char* stopping_line = "";
const char* ending_line = "";
const char* speakers_lock = "";

// Handlers read it as long as the process lives.
const char* kept(std::string& place, const std::string& text) {
  place = text;
  return place.c_str();
}

// Only calls that are safe in a handler.
bool say_line(const char* line) {
  const auto say = [](const char* text) { return ::write(STDERR_FILENO, text, std::strlen(text)) >= 0; };
  return say(::isatty(STDERR_FILENO) == 1 ? "\nsotto: " : "sotto: ") && say(line) && say("\n");
}

extern "C" void on_announced_signal(int signal) {
  if (requested == 0) say_line(signal == SIGTERM ? ending_line : stopping_line);
  on_signal(signal);
}

// The lock is kept to the end of this process, so that the next one is silent.
extern "C" void on_end_without_speaker(int signal) {
  const int file = ::open(speakers_lock, O_RDWR | O_CLOEXEC);
  if (file >= 0 && ::flock(file, LOCK_EX | LOCK_NB) == 0) say_line(ending_line);
  on_signal(signal);
}

extern "C" void on_ending_signal(int) {
  ::_exit(say_line(ending_line) ? 1 : 2);
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
  ending_line = line;
  std::signal(SIGINT, on_ending_signal);
  std::signal(SIGTERM, on_ending_signal);
}

void catch_interrupts() {
  if (!signals_are_ours) return;
  for (const int signal : kRequests) std::signal(signal, on_signal);
}

void announce_interrupts(const std::string& stopping, const std::string& ending) {
  if (!signals_are_ours) return;
  static std::string stopping_text, ending_text;
  stopping_line = kept(stopping_text, stopping);
  ending_line = kept(ending_text, ending);
  for (const int signal : kRequests) std::signal(signal, on_announced_signal);
}

void announce_end_without(const std::string& lock, const std::string& ending) {
  if (!signals_are_ours) return;
  static std::string lock_text, ending_text;
  speakers_lock = kept(lock_text, lock);
  ending_line = kept(ending_text, ending);
  std::signal(SIGTERM, on_end_without_speaker);
}

bool interrupted() {
  return requested != 0;
}

}  // namespace sotto

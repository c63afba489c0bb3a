// Ctrl-C as a request: long work asks between steps and stops where it can be resumed.
#pragma once

#include <stdexcept>
#include <string>

namespace sotto {

// Work that stopped because it was asked to; what() says how to go on. The program exits with 1.
class Interrupted : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// From here on SIGINT, SIGTERM and SIGUSR1, which mpirun hands on and batch systems can send before the time is up, only
// set a flag; a second one ends the process at once.
void catch_interrupts();

bool interrupted();

// The same as catch_interrupts; the first signal also shows a line on standard error at once: `stopping`, or `ending` if
// it is SIGTERM, by which mpirun ends a job, because somebody asked for it or because a process of it died. For work that
// may be killed before it comes to its end.
void announce_interrupts(const std::string& stopping, const std::string& ending);

// The same for those who only speak if the speaker cannot: SIGTERM shows the line if nobody holds the lock (flock) of
// this file any more, and once however many processes wait for that.
void announce_end_without(const std::string& lock, const std::string& ending);

// From here on SIGINT and SIGTERM end the process at once, with exit code 1 and this line on standard error. For work
// that keeps nothing on its way. The text must be a literal.
void end_on_interrupt(const char* line);

// For programs that have handlers of their own: from here on the two functions above install none, and whoever wants
// work to stop requests it.
void leave_signals_alone();
void request_interrupt(bool requested);

}  // namespace sotto

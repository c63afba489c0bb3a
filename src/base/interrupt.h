// Ctrl-C as a request: long work asks between steps and stops where it can be resumed.
#pragma once

#include <stdexcept>

namespace sotto {

// Work that stopped because it was asked to; what() says how to go on. The program exits with 1.
class Interrupted : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// From here on SIGINT and SIGTERM only set a flag; a second one ends the process at once.
void catch_interrupts();

bool interrupted();

// From here on SIGINT and SIGTERM end the process at once, with exit code 1 and this line on standard error. For work
// that keeps nothing on its way. The text must be a literal.
void end_on_interrupt(const char* line);

}  // namespace sotto

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

}  // namespace sotto

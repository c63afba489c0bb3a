// Ctrl-C as a request: long work asks between steps and stops where it can be resumed.
#pragma once

namespace sotto {

// From here on SIGINT and SIGTERM only set a flag; a second one ends the process at once.
void catch_interrupts();

bool interrupted();

}  // namespace sotto

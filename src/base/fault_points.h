// Places where a process can be made to die, so that tests can show that nothing is lost or spent twice.
#pragma once

namespace sotto {

// Kills the process, as kill -9 does, if SOTTO_KILL_AT is "NAME" or "NAME:n" and this is its n-th time at that point.
void fault_point(const char* name);

}  // namespace sotto

// Whether mpirun or srun started this process together with others, by what they put into its environment.
#pragma once

#include <string>

namespace sotto {

struct Launch {
  int rank = 0;
  int size = 1;        // 0: there may be others, and only MPI knows how many
  int local_size = 1;  // of these on this machine, as far as is known

  // The one that speaks for several.
  bool leads() const { return rank == 0 && size != 1; }
};

Launch launch();

// As people know this machine.
std::string host_name();

}  // namespace sotto

// The mechanisms that the ledger knows, for people.
#pragma once

#include <string>
#include <vector>

namespace sotto::privacy {

struct MechanismEntry {
  std::string name;  // as in the ledger's rows
  std::string what;
  std::string citation;  // "" for the project's own
};

const std::vector<MechanismEntry>& mechanism_catalogue();

}  // namespace sotto::privacy

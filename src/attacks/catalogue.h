// All attacks, by name.
#pragma once

#include "attacks/attack.h"

#include <string>
#include <vector>

namespace sotto::attacks {

const std::vector<AttackEntry>& catalogue();

// Throws a UserError for an unknown name.
const AttackEntry& find_attack(const std::string& name);

}  // namespace sotto::attacks

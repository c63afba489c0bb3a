#include "attacks/catalogue.h"

#include "attacks/gan.h"
#include "attacks/gradient_inversion.h"
#include "attacks/hijacking.h"
#include "attacks/lira.h"
#include "attacks/prototype_membership.h"
#include "attacks/shadow.h"
#include "base/error.h"
#include "base/text.h"

namespace sotto::attacks {

const std::vector<AttackEntry>& catalogue() {
  static const std::vector<AttackEntry> entries = {
      lira(), shadow(), gradient_inversion(), prototype_membership(), hijacking(), gan(),
  };
  return entries;
}

const AttackEntry& find_attack(const std::string& name) {
  std::vector<std::string> names;
  for (const AttackEntry& entry : catalogue()) {
    if (entry.name == name) return entry;
    names.push_back(entry.name);
  }
  fail_user("no attack is called '{}'{}; there are {}", name, did_you_mean(name, names), join(names, ", "));
}

}  // namespace sotto::attacks

// White-box audits of single mechanisms, each at its own worst pair of inputs.
#pragma once

#include "audit/case.h"

#include <functional>
#include <string>
#include <vector>

namespace sotto::audit {

// A mechanism at a budget. A new one is one function that makes a Case, and one line in mechanism_audits().
struct MechanismAudit {
  std::string name;
  std::function<Case(double epsilon, double delta)> at;
};

const std::vector<MechanismAudit>& mechanism_audits();

// An unknown name is a UserError.
const MechanismAudit& find_mechanism_audit(const std::string& name);

}  // namespace sotto::audit

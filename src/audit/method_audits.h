// Every method of the catalogue on a small federation made for audits: what --all goes through.
#pragma once

#include "audit/case.h"
#include "federation/setup.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace sotto::audit {

// Clients with a few records each: two Gaussian blobs in memory, a small network, one round of one full batch. With two
// classes, a record of the one label or the other has exactly opposite gradients in every layer: the worst pair. `toml`
// adds to its config: sections [method] and [privacy], and keys of others.
std::shared_ptr<const federation::Setup> audit_federation(const std::string& toml);

// One row of the table: a method in a variant, and what is known to be wrong with it.
struct MethodAudit {
  std::string method;
  std::string variant;
  std::string flaw;       // what the audit must find; "" where it must find nothing
  std::string note = {};  // tells rows of one method and variant apart
  std::function<Case()> make = {};
};

// Those listed by hand, then the sound variant of every other method of the catalogue that runs on the small federation
// with its default options, all at this budget. A method with a flaw of its own gets a line in the list, or a function
// where a line does not say enough.
std::vector<MethodAudit> method_audits(double epsilon = 2);

}  // namespace sotto::audit

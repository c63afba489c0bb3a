// One thing to be audited, and what came of it.
#pragma once

#include "audit/two_worlds.h"
#include "privacy/guarantee.h"

#include <nlohmann/json_fwd.hpp>

#include <limits>
#include <string>

namespace sotto::audit {

struct Case {
  std::string name;          // a mechanism or a method
  std::string variant = {};  // of a method: sound or paper
  std::string what;          // what is released, and what differs between the worlds
  std::string observer = "server";
  double delta = 1e-5;
  double claimed = 0;     // ε of what one trial releases, as its author counts
  double proven = 0;      // as the ledger counts
  bool gaussian = false;  // a Gaussian release without sampling: the curve test speaks of it
  MakeDraw make_draw = {};
};

enum class Verdict {
  kConsistent,  // nothing found beyond what is claimed
  kRefuted,     // more than was claimed leaks
  kBroken,      // more than was proven leaks: a bug in this program
};
std::string to_text(Verdict verdict);

struct Outcome {
  Case audited;
  Finding finding;
  double seconds = 0;

  // The larger of the bounds that apply.
  double epsilon() const;
  Verdict verdict() const;
  nlohmann::json to_json() const;
};

// delta is the case's own.
Outcome audit(const Case& subject, TrialOptions options);

}  // namespace sotto::audit

// One thing to be audited, and what came of it.
#pragma once

#include "audit/two_worlds.h"
#include "privacy/accounting/step.h"
#include "privacy/guarantee.h"

#include <nlohmann/json_fwd.hpp>

#include <limits>
#include <string>
#include <vector>

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
  // Gaussian steps, some of them sampled or allocated: what the curve test of their kind speaks of. Empty elsewhere.
  std::vector<privacy::Steps> family = {};
  MakeDraw make_draw = {};
};

enum class Verdict {
  kConsistent,  // nothing found beyond what is claimed
  kRefuted,     // more than was claimed leaks
  kBroken,      // more than was proven leaks: a bug in this program
};
std::string to_text(Verdict verdict);

// What a lower bound rests on.
enum class Ground {
  kCounting,  // nothing
  kCurve,     // that the release is Gaussian
  kFamily,    // that it is made of Gaussian steps, sampled as the ledger says
};
std::string to_text(Ground ground);

struct Outcome {
  Case audited;
  Finding finding;
  double by_family = 0;
  double seconds = 0;

  // The larger of the bounds that apply, and which that is.
  double epsilon() const;
  Ground ground() const;
  Verdict verdict() const;
  nlohmann::json to_json() const;
};

// delta is the case's own.
Outcome audit(const Case& subject, TrialOptions options);

}  // namespace sotto::audit

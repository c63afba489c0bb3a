// A guard before somebody else's training: it bounds what is to leave, pays for it at a home, adds noise, and gives the
// same bytes for the same key for ever.
//
// Whatever framework trains, the owner's budget holds: what a guard gives out has a row in the home's ledger, on disk
// before the caller sees it. A release that the budget does not allow is BudgetSpent, and nothing is computed.
//
//   HOME/budget.toml       or policy.toml: the promise (home.h)
//   HOME/ledger.sqlite     a row per release
//   HOME/released/         what was given out, by the hash of its key
#pragma once

#include "base/named_tensors.h"
#include "privacy/bounded.h"
#include "privacy/home.h"

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>

namespace sotto::privacy {

struct GuardedRelease {
  std::string what;             // what is released, as the ledger shows it: "update", "histogram", …
  std::string key;              // names this release: round 7 of run 3, for example
  double bound = 0;             // ℓ2 norm, over all tensors together, that nothing exceeds after clipping
  double noise_multiplier = 0;  // standard deviation over what one change moves
  // Every tensor is [records, …]: each record's part is clipped to the bound, then they are summed and divided by
  // `divisor`, which must not depend on the records. Otherwise the tensors are one value, all of which one record may
  // change. Whoever makes the parts sees to it that a record's part depends on that record alone.
  bool per_record = false;
  double divisor = 1;
};

// How far one change moves what such a request bounds, and the values bounded so. `values` are float32 and may be changed.
double sensitivity_of(const GuardedRelease& request, const Neighbours& neighbours);
Bounded bounded(const GuardedRelease& request, const Neighbours& neighbours, NamedTensors values);

// Thread-safe. One process per home; a process that was forked from the guard's own must open another home, and a UserError
// says so.
class Guard {
 public:
  // `records` names the records that the home is of; another name later is a UserError.
  Guard(const std::filesystem::path& home, const std::string& records);

  // What leaves. With a key that was used before: what left then, whatever `values` are now, and nothing is spent. The
  // same key for another kind of release (what, bound, noise, shapes) is a UserError.
  NamedTensors release(const GuardedRelease& request, const NamedTensors& values);

  // The noise multiplier with which one release costs no more than ε by itself, at the home's δ.
  double multiplier_for(double epsilon) const;

  double budget() const { return home_.terms().epsilon; }
  // The ε of all that was released so far, and how many releases there were.
  double spent() const;
  int64_t releases() const;
  const Home& home() const { return home_; }

 private:
  std::optional<NamedTensors> released_before(const GuardedRelease& request, const std::string& terms) const;
  std::filesystem::path file_of(const std::string& key) const;
  void require_own_process() const;

  Home home_;
  const pid_t process_;
  mutable std::mutex mutex_;
};

}  // namespace sotto::privacy

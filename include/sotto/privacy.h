// An owner's budget before a training of one's own, whatever trains; and ledgers, to be read.
//
//   Guard guard({.home = "home", .budget = Budget{.epsilon = 4, .delta = 1e-6, .adjacency = Adjacency::kReplace}});
//   const double z = guard.multiplier_for(0.5);
//   Tensors noisy = guard.release({.what = "update", .key = "run 3, round 7", .bound = 1, .noise_multiplier = z}, update);
#pragma once

#include "sotto/accounting.h"
#include "sotto/sotto.h"

#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace sotto {

// A release was refused: it would have cost more than the budget. Nothing was computed or written.
class SOTTO_API BudgetSpent : public Error {
 public:
  using Error::Error;
};

// What an owner allows in all, over everything that is ever released of the records.
struct Budget {
  double epsilon = 0;
  double delta = 0;
  Adjacency adjacency = Adjacency::kReplace;
};

struct GuardOptions {
  std::filesystem::path home;         // a folder with a budget.toml
  std::string records = "records";    // names the records that the home is of; another name later is an Error
  std::optional<Budget> budget = {};  // written where there is no budget.toml yet; one that is there is kept as it is
};

struct Release {
  std::string what;             // as the ledger shows it: "update", "histogram", …
  std::string key;              // names this one release: the same key gives the same values for ever
  double bound = 0;             // ℓ2 norm, over all tensors together, that clipping enforces
  double noise_multiplier = 0;  // the noise's standard deviation over what one change can move
  // Every tensor is [records, …]: each record's part is clipped, then they are summed and divided by `divisor`, which must
  // not depend on the records. A record's part must depend on that record alone. Otherwise one record may change all.
  bool per_record = false;
  double divisor = 1;
};

// Clips what is to leave, pays for it in the ledger of a home, and adds noise of the operating system's entropy. The
// ledger's row is on disk before the caller sees anything. Thread-safe. One process per home; after a fork the child must
// open a home of its own.
class SOTTO_API Guard {
 public:
  explicit Guard(const GuardOptions& options);
  ~Guard();
  Guard(Guard&&) noexcept;
  Guard& operator=(Guard&&) noexcept;

  // What may leave, in float32. With a key that was used before: what left then, whatever `values` are now, for nothing;
  // the same key for another kind of release is an Error. BudgetSpent if the budget does not allow it.
  Tensors release(const Release& request, const Tensors& values);

  // The noise multiplier with which one release costs no more than ε by itself.
  double multiplier_for(double epsilon) const;
  double budget() const;
  // The ε of all that was released so far.
  double spent() const;
  int64_t releases() const;

 private:
  struct Inside;
  std::unique_ptr<Inside> inside_;
};

// One release, as the ledger holds it.
struct LedgerRow {
  int64_t round = 0;
  int64_t client = 0;        // -1: it may depend on any of them
  std::string observer;      // the first to see it: server, clients, public
  std::string what;          // update, model, …
  std::string mechanism;     // gaussian, laplace, …, in-the-clear
  std::string why_unproven;  // "" if an ε can be proven
  double noise_scale = 0;
  double sensitivity = 0;
  int64_t steps = 1;
};

// ε at a stated δ.
struct Spent {
  double claimed = 0;                                       // as the method's paper counts
  double proven = std::numeric_limits<double>::infinity();  // from the noise that was added
  std::string why_unproven;                                 // if there is no finite proven ε
};

// For reading, also while another process writes. A damaged or shortened file is an Error.
class SOTTO_API Ledger {
 public:
  // Of a run directory or a home, or the file itself.
  explicit Ledger(const std::filesystem::path& place);
  ~Ledger();
  Ledger(Ledger&&) noexcept;
  Ledger& operator=(Ledger&&) noexcept;

  std::vector<LedgerRow> rows() const;
  // Recomputes the chain of hashes; an Error names the first row that was changed.
  void verify() const;
  // What a client has spent in the eyes of an observer: server, clients or public.
  Spent spent(int64_t client, double delta, const std::string& observer = "server") const;

 private:
  struct Inside;
  std::unique_ptr<Inside> inside_;
};

}  // namespace sotto

// What releases cost together.
#pragma once

#include "privacy/accounting/step.h"
#include "privacy/event.h"

#include <string>
#include <vector>

namespace sotto::privacy {

// ε at a stated δ, for one client and one observer.
struct Guarantee {
  double claimed = 0;                     // as the method's paper counts
  double proven = 0;                      // from the noise that was added; ∞ if there is none
  std::vector<std::string> why_unproven;  // not empty if proven is ∞ for a reason of its own
};

// Whether `observer` gets to see a release: the server sees everything; what it was trusted with, nobody else does.
bool is_seen_by(const Event& event, const std::string& observer);

// The releases of one client, in any order.
class Tally {
 public:
  void add(const Event& event, int64_t times = 1);
  void add(const Tally& other);
  // At δ, rounded up.
  Guarantee guarantee(double delta) const;
  double claimed(double delta) const;
  // Noise of finite precision included: ∞ where there is so little of it (ε of a hundred, one release) that one world's
  // outputs lie beyond what the other's can be.
  double proven(double delta) const;
  // The same if noise were drawn from its law exactly, for budgets that large.
  double proven_of_ideal_noise(double delta) const;
  bool empty() const { return proven_.empty() && why_.empty(); }
  // What proven() composes, for other bounds on the same releases: nothing can be proven where reasons are given.
  const std::vector<Steps>& steps() const { return proven_; }
  bool renyi_only() const { return renyi_only_; }
  double slack() const { return slack_; }
  const std::vector<std::string>& why_unproven() const { return why_; }
  // Whether it holds nothing that `other` does not hold at least as often.
  bool within(const Tally& other) const;

  bool operator<(const Tally& other) const;

 private:
  // Steps of one kind, sorted and merged, so that equal spending looks equal.
  using Pile = std::vector<Steps>;
  static void merge(Pile& pile, const Steps& steps);
  double epsilon_of(const Pile& pile, double delta) const;
  // From the relative error of every probability, where e^ε times the error of all is too much.
  double proven_by_ratio(double delta) const;

  Pile proven_;
  Pile claimed_;        // to be accounted for as proven_ is
  Pile claimed_renyi_;  // by Rényi orders 2 … 64
  double claimed_each_ = 0;
  double claimed_run_ = 0;
  double slack_ = 0;
  // The losses of a discrete Gaussian are known where integers move by 1. Otherwise its Rényi divergences are at most the
  // Gaussian's, and that is all it shares with it: once there is one, everything is accounted for by these.
  bool renyi_only_ = false;
  std::vector<std::string> why_;
};

}  // namespace sotto::privacy

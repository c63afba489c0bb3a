// What clients have spent, from the rows of a ledger.
#pragma once

#include "privacy/guarantee.h"

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace sotto::privacy {

class Ledger;

// ε of tallies met before: composing is the slow part, and clients and rounds share their tallies. Thread-safe.
class GuaranteeCache {
 public:
  Guarantee operator()(const Tally& tally, double delta);

 private:
  std::mutex mutex_;
  std::map<std::pair<double, Tally>, Guarantee> known_;
};

// In the eyes of one observer, at one δ.
class Spending {
 public:
  Spending(std::string observer, double delta) : observer_(std::move(observer)), delta_(delta) {}

  void take(const Event& event);
  // Takes the ledger's rows of all rounds up to `round` that were not taken before.
  void advance_to(int64_t round, const Ledger& ledger);

  // A client's own releases and those that are made of everyone.
  Tally tally_of(int64_t client) const;
  Guarantee of(int64_t client) { return known_(tally_of(client), delta_); }
  // The largest claimed and the largest proven ε of any client. Costs little where clients spend alike.
  Guarantee worst();

 private:
  std::string observer_;
  double delta_;
  int64_t next_round_ = 0;
  std::map<int64_t, Tally> spent_;
  GuaranteeCache known_;
};

// What clients 0 … clients-1 have spent by all of a ledger's rows.
std::vector<Guarantee> guarantees(const Ledger& ledger, const std::string& observer, int64_t clients, double delta);

}  // namespace sotto::privacy

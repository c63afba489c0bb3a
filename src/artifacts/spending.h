// What clients have spent as a run goes on, in the eyes of the observer that its config declares.
#pragma once

#include "config/run_spec.h"
#include "privacy/ledger.h"

#include <cstdint>
#include <map>

namespace sotto::artifacts {

class Spending {
 public:
  explicit Spending(const config::RunSpec& spec);

  // Takes in the ledger's rows of all rounds up to `round` that were not taken in before.
  void advance_to(int64_t round, const privacy::Ledger& ledger);

  privacy::Guarantee of(int64_t client);
  // The largest claimed and the largest proven ε of any client. Costs little where clients spend alike.
  privacy::Guarantee worst();

 private:
  privacy::Tally tally_of(int64_t client) const;
  const privacy::Guarantee& guarantee(const privacy::Tally& tally);

  const std::string observer_;
  const double delta_;
  int64_t next_round_ = 0;
  std::map<int64_t, privacy::Tally> spent_;
  std::map<privacy::Tally, privacy::Guarantee> known_;
};

}  // namespace sotto::artifacts

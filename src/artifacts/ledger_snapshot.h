// A run's ledger as it stood at one moment.
#pragma once

#include "privacy/ledger.h"

#include <filesystem>
#include <memory>

namespace sotto::artifacts {

// Opening a database, even to read it, leaves files beside it. A snapshot is a copy in a temporary folder: the run
// directory stays untouched, and a run that is writing is not disturbed.
class LedgerSnapshot {
 public:
  // A UserError if there is no ledger, if it is damaged or not the one that checkpoint and summary speak of, or if it
  // changed all the time while it was being copied.
  explicit LedgerSnapshot(const std::filesystem::path& run);
  ~LedgerSnapshot();
  LedgerSnapshot(const LedgerSnapshot&) = delete;
  LedgerSnapshot& operator=(const LedgerSnapshot&) = delete;

  const privacy::Ledger& operator*() const { return *ledger_; }
  const privacy::Ledger* operator->() const { return ledger_.get(); }

 private:
  std::filesystem::path folder_;
  std::unique_ptr<privacy::Ledger> ledger_;
};

}  // namespace sotto::artifacts

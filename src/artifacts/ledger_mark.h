// How far a run's ledger had come when its checkpoint and its summary were written.
//
// Rows are only ever added: the ledger of a run holds at least the rows that these files have seen, with the same links.
// One that does not was lost, replaced or put back from an older copy, and its ε would be too small.
#pragma once

#include "privacy/ledger.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace sotto::artifacts {

struct LedgerMark {
  std::filesystem::path file;  // that holds the mark
  int64_t rows = 0;
  std::string head;  // the link of the last of them; "" if there are none
};

std::filesystem::path ledger_file(const std::filesystem::path& run);

// A run has its ledger from its first moment on: one without is a UserError.
void require_ledger(const std::filesystem::path& run);

// Of the last checkpoint and the summary, as far as they exist; earlier versions of Sotto left no marks. Read them
// before a ledger that is being written: it only grows.
std::vector<LedgerMark> ledger_marks(const std::filesystem::path& run);

// A UserError if the run's ledger is not the one that the marks speak of.
void check_marks(const std::filesystem::path& run, const privacy::Ledger& ledger, const std::vector<LedgerMark>& marks);

}  // namespace sotto::artifacts

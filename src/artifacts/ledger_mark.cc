#include "artifacts/ledger_mark.h"

#include "artifacts/checkpoint_file.h"
#include "artifacts/summary.h"
#include "base/error.h"
#include "base/files.h"

namespace sotto::artifacts {

fs::path ledger_file(const fs::path& run) {
  return run / "ledger.sqlite";
}

void require_ledger(const fs::path& run) {
  if (fs::exists(ledger_file(run))) return;
  fail_user("{} has no ledger, so what it has spent is not known; put {} back, or run it again with another --out",
            run.string(), ledger_file(run).string());
}

std::vector<LedgerMark> ledger_marks(const fs::path& run) {
  std::vector<LedgerMark> marks;
  if (const auto checkpoint = read_last_checkpoint(run); checkpoint && checkpoint->ledger()) {
    marks.push_back(*checkpoint->ledger());
  }
  if (const auto summary = read_summary(run); summary && summary->privacy.ledger) {
    marks.push_back({summary_file(run), summary->privacy.ledger->rows, summary->privacy.ledger->head});
  }
  return marks;
}

void check_marks(const fs::path& run, const privacy::Ledger& ledger, const std::vector<LedgerMark>& marks) {
  for (const LedgerMark& mark : marks) {
    if (ledger.rows() < mark.rows) {
      fail_user("{} is older than its run: it holds {} rows, and {} has seen {}; put the run's own ledger back",
                ledger_file(run).string(), ledger.rows(), mark.file.string(), mark.rows);
    }
    if (ledger.link(mark.rows) != mark.head) {
      fail_user(
          "{} is not the ledger of its run: row {} is not the one that {} has seen; put the run's own ledger back",
          ledger_file(run).string(), mark.rows, mark.file.string());
    }
  }
}

}  // namespace sotto::artifacts

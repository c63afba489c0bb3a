#include "artifacts/ledger_snapshot.h"

#include "artifacts/ledger_mark.h"
#include "base/error.h"
#include "base/files.h"

#include <sys/stat.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <tuple>

namespace sotto::artifacts {
namespace {

constexpr int kTries = 20;
constexpr auto kPause = std::chrono::milliseconds(10);
constexpr std::array<const char*, 2> kFiles = {"ledger.sqlite", "ledger.sqlite-wal"};

using Stamp = std::tuple<ino_t, off_t, time_t, long>;

std::array<Stamp, kFiles.size()> stamps(const fs::path& run) {
  std::array<Stamp, kFiles.size()> all = {};
  for (size_t i = 0; i < kFiles.size(); ++i) {
    struct stat status = {};
    if (::stat((run / kFiles[i]).c_str(), &status) != 0) continue;
    all[i] = {status.st_ino, status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec};
  }
  return all;
}

// Whether nobody wrote meanwhile.
bool copied(const fs::path& run, const fs::path& to) {
  const auto before = stamps(run);
  for (const char* file : kFiles) {
    std::error_code error;
    fs::remove(to / file, error);
    fs::copy_file(run / file, to / file, error);
  }
  return stamps(run) == before;
}

}  // namespace

LedgerSnapshot::LedgerSnapshot(const fs::path& run) {
  require_ledger(run);
  const std::vector<LedgerMark> marks = ledger_marks(run);
  std::string name = (fs::temp_directory_path() / "sotto-ledger-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) fail_user("cannot create a folder in {}", fs::temp_directory_path().string());
  folder_ = name;
  try {
    int tries = 0;
    while (!copied(run, folder_)) {
      if (++tries == kTries) fail_user("the ledger of {} changes too fast to be read; try again", run.string());
      std::this_thread::sleep_for(kPause);
    }
    ledger_ = std::make_unique<privacy::Ledger>(folder_ / kFiles[0], privacy::Ledger::Mode::kRead);
    check_marks(run, *ledger_, marks);
  } catch (...) {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
    throw;
  }
}

LedgerSnapshot::~LedgerSnapshot() {
  ledger_.reset();
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

}  // namespace sotto::artifacts
